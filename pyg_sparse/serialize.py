"""Plans on disk: one safetensors file, its metadata JSON. Nothing in a file is executed."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from pyg_sparse.formats import FORMATS, SparseMatrix
from pyg_sparse.plan import Plan
from pyg_sparse.side import REVERSED

VERSION = 5
_VECTORS = ("in_degree", "out_degree", "self_loops", "loop_nodes")


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    tensors = {name: getattr(plan, name) for name in _VECTORS}
    tensors |= {f"forward.{name}": tensor for name, tensor in plan.forward.tensors().items()}
    if plan.backward is not plan.forward:
        own = {"slot": plan.backward.slot} if plan.symmetric else plan.backward.tensors()
        tensors |= {f"backward.{name}": tensor for name, tensor in own.items()}
    about = {
        "version": VERSION,
        "num_src": plan.num_src,
        "num_dst": plan.num_dst,
        "num_edges": plan.num_edges,
        "symmetric": plan.symmetric,
        "orders": plan.orders,
        "edges": plan.edges,
        "forward": {"format": plan.forward.name, **plan.forward.numbers()},
        "backward": {"format": plan.backward.name, **plan.backward.numbers()},
    }
    path = Path(path)
    # Written beside its destination and renamed, so that a reader never sees half a file.
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
    os.close(descriptor)
    try:
        contiguous = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        safetensors.torch.save_file(contiguous, temporary, metadata={"pyg_sparse_plan": json.dumps(about)})
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def load_plan(path: str | os.PathLike[str], device: torch.device | str) -> Plan:
    if not Path(path).is_file():
        raise FileNotFoundError(f"path={str(path)!r}: there is no such plan file")
    try:
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            about = json.loads((file.metadata() or {})["pyg_sparse_plan"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["version"] != VERSION:
            raise ValueError(f"it has version {about['version']}, this library reads {VERSION}")
        plan = _assemble(about, tensors)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"path={str(path)!r} is not a readable pyg_sparse plan: {error!r}") from error
    return plan.to(device)


def _assemble(about: dict[str, Any], tensors: dict[str, Tensor]) -> Plan:
    forward = _matrix(about["forward"], tensors, "forward.")
    own = {name for name in tensors if name.startswith("backward.")}
    if not own:
        backward = forward
    elif own == {"backward.slot"}:
        backward = replace(forward, slot=tensors["backward.slot"])
    else:
        backward = _matrix(about["backward"], tensors, "backward.")
    plan = Plan(
        num_src=about["num_src"],
        num_dst=about["num_dst"],
        num_edges=about["num_edges"],
        forward=forward,
        backward=backward,
        symmetric=about["symmetric"],
        orders=_orders(about["orders"]),
        edges=_edges(about["edges"]),
        **{name: tensors[name] for name in _VECTORS},
    )
    plan.check()
    return plan


def _orders(names: Any) -> tuple[str, str]:
    if not (isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)):
        raise ValueError(f"orders must be two names, not {names!r}")
    return names[0], names[1]


def _edges(name: Any) -> str:
    if name not in REVERSED:
        raise ValueError(f"edges must be one of {', '.join(REVERSED)}, not {name!r}")
    return str(name)


def _matrix(about: dict[str, Any], tensors: dict[str, Tensor], prefix: str) -> SparseMatrix:
    numbers = dict(about)
    cls = FORMATS[numbers.pop("format")]
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    return cls(**numbers, **own)  # type: ignore[arg-type]
