"""Loads the native library, which registers the torch operators."""

import json
from pathlib import Path
from typing import Any

import torch

BUILD = "pip install --no-build-isolation -e ."


def library_path() -> Path:
    return Path(__file__).with_name("_C.so")


def build_info() -> dict[str, Any]:
    """What the library was compiled with, and what it found of the processor."""
    info: dict[str, Any] = json.loads(torch.ops.pyg_sparse.build_info())
    return info


def load() -> None:
    path = library_path()
    if not path.is_file():
        raise ImportError(
            f"pyg_sparse's native library is not built: looked for {path}\n"
            f"Build it in the root of the repository with:  {BUILD}"
        )
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise ImportError(
            f"pyg_sparse's native library does not load with torch {torch.__version__}: {error}\n"
            f"Rebuild it in the root of the repository with:  {BUILD}"
        ) from error
