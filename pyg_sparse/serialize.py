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
from pyg_sparse.plan import Pair, Plan, side_of
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.choice import check_report
from pyg_sparse.side import REVERSED

VERSION = 6
_VECTORS = ("in_degree", "out_degree", "self_loops", "loop_nodes")


def pack(plan: Plan) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What :func:`unpack` makes the plan of: JSON, and tensors by name, on the plan's device."""
    tensors = {name: getattr(plan, name) for name in _VECTORS}
    names = {id(matrix): f"matrix.{i}" for i, matrix in enumerate(plan.matrices())}
    whole = {id(matrix): id(matrix) for matrix in plan.matrices()}  # whose structure a matrix has
    if plan.symmetric:
        whole |= {id(pair.backward): id(pair.forward) for pair in plan.pairs()}
    matrices = []
    for matrix in plan.matrices():
        name, owner = names[id(matrix)], names[whole[id(matrix)]]
        own = matrix.tensors() if owner == name else {"slot": matrix.slot}
        tensors |= {f"{name}.{key}": tensor for key, tensor in own.items()}
        matrices.append({"name": name, "structure": owner, "format": matrix.name, **matrix.numbers()})
    about = {
        "version": VERSION,
        "num_src": plan.num_src,
        "num_dst": plan.num_dst,
        "num_edges": plan.num_edges,
        "symmetric": plan.symmetric,
        "edges": plan.edges,
        "matrices": matrices,
        "pairs": [
            {
                "cases": sorted(map(list, pair.cases)) if isinstance(pair, Pair) else [],
                "forward": names[id(pair.forward)],
                "backward": names[id(pair.backward)],
                "orders": pair.orders,
            }
            for pair in plan.pairs()
        ],
        "report": plan.report,
    }
    return about, tensors


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    about, tensors = pack(plan)
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
        plan = unpack(about, tensors)
    except (safetensors.SafetensorError, *MALFORMED) as error:
        raise ValueError(f"path={str(path)!r} is not a readable pyg_sparse plan: {error!r}") from error
    return plan.to(device)


MALFORMED = (
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What :func:`unpack` raises for what is no plan."""


def unpack(about: Any, tensors: dict[str, Tensor], *, check_edges: bool = True) -> Plan:
    """The plan, checked: no kernel will read past its tensors. Raises one of ``MALFORMED``."""
    if about["version"] != VERSION:
        raise ValueError(f"it has version {about['version']}, this library reads {VERSION}")
    edges = _edges(about["edges"])
    matrices: dict[str, SparseMatrix] = {}
    for entry in about["matrices"]:
        numbers = dict(entry)
        name, structure = numbers.pop("name"), numbers.pop("structure")
        own = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
        if structure == name:
            matrices[name] = FORMATS[numbers.pop("format")](**numbers, **own)  # type: ignore[arg-type]
        else:
            matrices[name] = replace(matrices[structure], slot=own["slot"])
    pairs = []
    for entry in about["pairs"]:
        a, b = matrices[entry["forward"]], matrices[entry["backward"]]
        cases = frozenset(Case(int(width), int(itemsize)) for width, itemsize in entry["cases"])
        pairs.append(Pair(cases, a, b, _orders(entry["orders"]), side_of(a, b, edges)))
    plan = Plan(
        num_src=about["num_src"],
        num_dst=about["num_dst"],
        num_edges=about["num_edges"],
        forward=pairs[0].forward,
        backward=pairs[0].backward,
        symmetric=about["symmetric"],
        orders=pairs[0].orders,
        edges=edges,
        special=tuple(pairs[1:]),
        report=_report(about["report"]),
        **{name: tensors[name] for name in _VECTORS},
    )
    plan.check(edges=check_edges)
    return plan


def _orders(names: Any) -> tuple[str, str]:
    if not (isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)):
        raise ValueError(f"orders must be two names, not {names!r}")
    return names[0], names[1]


def _report(about: Any) -> dict[str, Any]:
    if about and about.keys() != {"forward", "backward"}:
        raise ValueError(f"a report must be of both directions, not of {', '.join(map(str, about))}")
    for side in about.values():
        check_report(side)
    return dict(about)


def _edges(name: Any) -> str:
    if name not in REVERSED:
        raise ValueError(f"edges must be one of {', '.join(REVERSED)}, not {name!r}")
    return str(name)
