"""The options that the operators' benchmarks share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import check
from pyg_sparse.formats import SPECS

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in check.TOLERANCE}


def parser(module: str, description: str, *, widths: list[int], hyb: list[int], file: str) -> argparse.ArgumentParser:
    """Of `python -m benchmarks.<module>`, which writes `file`; the rivals differ, and are the benchmark's own."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    add = parser.add_argument
    add(
        "--graphs",
        nargs="+",
        default=["reddit", "arxiv", "products", "proteins"],
        help="synthetic shapes, mtx:PATH or npz:PATH; after ordered: with nodes numbered in our order",
    )
    add("--widths", nargs="+", type=int, default=widths)
    add("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    add("--formats", nargs="*", choices=["auto", *SPECS], default=list(SPECS))
    add("--hyb", nargs="+", type=int, default=hyb, help="partition counts of hyb")
    add("--scale", type=float, help="of synthetic shapes; default 1 on CUDA, 0.05 on the CPU")
    add("--seed", type=int, default=0)
    add("--repeats", type=int, default=20)
    add("--seconds", type=float, default=4.0, help="longest time for the repeats of one measurement")
    add("--device", default="auto")
    add("--out", type=Path, help=f"default: benchmarks/results/<device>/{file}")
    add("--append", action="store_true", help="keep the rows in the file, of the same commit and machine")
    return parser


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str], *, on_cuda: list[str], on_cpu: list[str]
) -> argparse.Namespace:
    """The arguments, with the defaults that depend on the device; `on_cuda` and `on_cpu` are the rivals there."""
    arguments = parser.parse_args(argv)
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    cuda = arguments.device.startswith("cuda")
    if arguments.rivals is None:
        arguments.rivals = on_cuda if cuda else on_cpu
    if arguments.scale is None:
        arguments.scale = 1.0 if cuda else 0.05
    return arguments
