"""The command line, checked and turned into a Config."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from . import __doc__ as description
from .data import CPU_SCALE, RECIPES, default_scale
from .model import BACKENDS
from .train import Config

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Options:
    config: Config
    backend: str
    compare: bool
    json: Path
    picture: Path


def parse(argv: Sequence[str]) -> Options:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("argument --device: cuda, but this torch finds no CUDA device; allowed here: auto, cpu")
    if args.dataset == "ogbn-arxiv" and find_spec("ogb") is None:
        parser.error("argument --dataset: ogbn-arxiv needs ogb: pip install 'pyg_sparse[datasets]'")
    kind = args.device if args.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(kind)

    recipe = RECIPES[args.dataset]
    chosen = {name: getattr(args, name) for name in vars(recipe)}
    config = Config(
        dataset=args.dataset,
        root=args.root,
        scale=default_scale(device) if args.scale is None else args.scale,
        device=device,
        dtype=DTYPES[args.dtype],
        amp=torch.bfloat16 if args.amp else None,
        layers=args.layers,
        seeds=tuple(range(args.seed, args.seed + args.seeds)),
        **{name: getattr(recipe, name) if value is None else value for name, value in chosen.items()},
    )
    json = args.json or args.out / "epoch.json"
    return Options(config, args.backend, args.compare, json, args.out / "gcn.png")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.gcn_reddit", description=description)
    add = parser.add_argument
    by_dataset = "default: the data set's, see README.md"

    add("--dataset", choices=RECIPES, default="reddit-shaped", help="reddit-shaped is synthetic")
    add("--root", type=Path, default=Path("data"), help="folder of the real data sets (%(default)s)")
    add(
        "--scale",
        type=_number(float, "in (0, 1]", lambda v: 0 < v <= 1),
        help=f"share of Reddit's nodes in reddit-shaped, at an unchanged mean degree where possible "
        f"(default: 1 on a GPU, {CPU_SCALE} on a CPU)",
    )
    add("--backend", choices=BACKENDS, default="pyg_sparse")
    add("--compare", action="store_true", help="then train with the other backends, too")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--dtype", choices=DTYPES, default="float32")
    add("--amp", choices=("bf16",), help="autocast to this dtype")

    positive = _number(int, "a whole number from 1", lambda v: v >= 1)
    not_negative = _number(float, "a number from 0", lambda v: v >= 0)
    add("--layers", type=positive, default=2)
    add("--hidden", type=positive, help=by_dataset)
    add("--epochs", type=positive, help=by_dataset)
    add("--lr", type=_number(float, "a number above 0", lambda v: v > 0), help=by_dataset)
    add("--dropout", type=_number(float, "in [0, 1)", lambda v: 0 <= v < 1), help=by_dataset)
    add("--weight-decay", type=not_negative, help=f"of the first layer; {by_dataset}")
    add("--seed", type=_number(int, "a whole number from 0", lambda v: v >= 0), default=0)
    add("--seeds", type=positive, default=1, help="train with this many seeds, counting up from --seed")

    add("--out", type=Path, default=Path("results/gcn_reddit"), help="folder of the results (%(default)s)")
    add("--json", type=Path, help="result file (default: epoch.json in --out)")
    return parser


def _number(kind: type[int] | type[float], allowed: str, accept: Callable[[float], bool]) -> Callable[[str], float]:
    """An argparse type that says what is allowed."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accept(value):
            raise argparse.ArgumentTypeError(f"must be {allowed}, got {text!r}")
        return value

    return convert
