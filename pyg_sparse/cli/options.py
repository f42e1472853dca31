"""The arguments that several commands have, checked before anything runs."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import torch

from pyg_sparse._extension import build_info
from pyg_sparse.cli.graph import READERS
from pyg_sparse.planner.cases import DEFAULT_WIDTHS, DTYPES

PICTURES = (".png", ".svg", ".pdf")
_SHORT = {torch.float64: "fp64", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_DTYPE = {name: dtype for dtype in DTYPES for name in (str(dtype).removeprefix("torch."), _SHORT[dtype])}


def add_common(parser: argparse.ArgumentParser) -> None:
    files = ", ".join(READERS)
    parser.add_argument("graph", metavar="GRAPH", help=f"a file ({files}), a PyG dataset's name, or shape:NAME@SCALE")
    parser.add_argument("--root", type=Path, metavar="DIR", help="where datasets lie, or are downloaded to")
    parser.add_argument(
        "--device", type=_device, default="auto", help="cpu, cuda or cuda:N; default: cuda if there is one"
    )
    parser.add_argument(
        "--widths",
        type=_widths,
        default=DEFAULT_WIDTHS,
        metavar="K,K,...",
        help="numbers of features; default: 8,32,128,256",
    )
    parser.add_argument(
        "--dtypes", "--dtype", type=_dtypes, default=(torch.float32,), metavar="T,T,...",
        help=f"of features: {', '.join(_SHORT.values())}; default: fp32",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=_picture, metavar="FILE", help=f"draw a picture: {', '.join(PICTURES)}")
    parser.add_argument("--html", type=writable, metavar="FILE", help="write all of it as one HTML page")


def _device(value: str) -> torch.device:
    usable = torch.cuda.is_available() and build_info()["cuda"]
    if value == "auto":
        value = "cuda" if usable else "cpu"
    try:
        device = torch.device(value)
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"{value!r} must be cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise argparse.ArgumentTypeError(f"{value!r} must be cpu, cuda or cuda:N")
    if device.type == "cuda" and not usable:
        why = "there is no CUDA device" if build_info()["cuda"] else "pyg_sparse was built for the CPU only"
        raise argparse.ArgumentTypeError(f"{value!r} cannot be used: {why}; allowed: cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(
            f"{value!r} must be one of {torch.cuda.device_count()} devices, from cuda:0 on"
        )
    return torch.empty(0, device=device).device  # "cuda" gets its index


def _widths(value: str) -> tuple[int, ...]:
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{value!r} must be numbers of features, 1 or more, with commas: 8,32")
    return tuple(sorted({int(part) for part in parts}))


def _dtypes(value: str) -> tuple[torch.dtype, ...]:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in _DTYPE:
            raise argparse.ArgumentTypeError(f"{name!r} must be one of {', '.join(_DTYPE)}")
    return tuple(dict.fromkeys(_DTYPE[name] for name in names))


def _picture(value: str) -> Path:
    path = writable(value)
    if path.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(f"{value!r} must end in {', '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("pictures need matplotlib: pip install 'pyg_sparse[plots]'")
    return path


def writable(value: str) -> Path:
    path = Path(value)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{value!r} must be a file in a folder that exists")
    return path


def positive(value: str) -> float:
    """A positive number, of seconds or the like."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value!r} must be a positive number")
    return number
