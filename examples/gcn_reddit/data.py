"""The data sets by name: what to load, and how the model is trained on it unless told otherwise."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric import transforms as T


@dataclass(frozen=True)
class Recipe:
    """Defaults of the options that depend on the data set."""

    hidden: int = 128
    epochs: int = 30
    lr: float = 0.01
    dropout: float = 0.5
    weight_decay: float = 0.0


# Kipf and Welling 2017, section 5.2.
PLANETOID = Recipe(hidden=16, epochs=200, weight_decay=5e-4)
RECIPES = {
    "reddit-shaped": Recipe(),
    "reddit": Recipe(epochs=100),
    "planetoid:Cora": PLANETOID,
    "planetoid:CiteSeer": PLANETOID,
    "planetoid:PubMed": PLANETOID,
    "ogbn-arxiv": Recipe(epochs=300),
}

# Of Reddit's nodes: what lets a CPU compare all backends in about three minutes.
CPU_SCALE = 0.03


@dataclass
class Task:
    """Node classification on one graph, a real one or a synthetic one, which has a ``scale``.

    ``x`` is ``[N, F]``, ``edge_index`` int64 ``[2, E]``, ``y`` int64 ``[N]``; ``masks`` are bool ``[N]``, by
    their names ``train``, ``val`` and ``test``.
    """

    name: str
    x: Tensor
    edge_index: Tensor
    y: Tensor
    masks: dict[str, Tensor]
    classes: int
    scale: float | None

    @property
    def about(self) -> str:
        kind = "real" if self.scale is None else f"synthetic, scale {self.scale:g}"
        return f"{self.name} ({kind}), {len(self.x):,} nodes, {self.edge_index.size(1):,} edges"

    def describe(self) -> str:
        sizes = ", ".join(f"{int(mask.sum()):,} {part}" for part, mask in self.masks.items())
        return (
            f"{self.about} (both directions counted), {self.x.size(1)} features, {self.classes} classes; "
            f"nodes to {sizes}"
        )


def default_scale(device: torch.device) -> float:
    return 1.0 if device.type == "cuda" else CPU_SCALE


def is_synthetic(name: str) -> bool:
    """Whether the data set is a synthetic graph: the name of its shape and ``-shaped``."""
    return name.endswith("-shaped")


def load(name: str, *, root: Path, scale: float, seed: int, device: torch.device) -> Task:
    """The data set ``name`` on ``device``.

    ``root`` is the folder of the real data sets; ``scale`` and ``seed`` are for the synthetic one.
    """
    data: Any
    if is_synthetic(name):
        from pyg_sparse.datasets import shape_of, shaped_data

        shape = name.removesuffix("-shaped")
        data = shaped_data(shape, scale=scale, seed=seed, device=device)
        return _task(name, data, classes=shape_of(shape).classes, scale=scale)
    if name == "reddit":
        from torch_geometric.datasets import Reddit

        data = Reddit(str(root / "reddit"))[0]
    elif name == "ogbn-arxiv":
        data = _ogbn_arxiv(root)
    else:
        data = _planetoid(name.removeprefix("planetoid:"), root)
    return _task(name, data.to(device), classes=int(data.y.max()) + 1, scale=None)


def _task(name: str, data: Any, classes: int, scale: float | None) -> Task:
    masks = {part: data[f"{part}_mask"] for part in ("train", "val", "test")}
    return Task(name, data.x, data.edge_index, data.y, masks, classes, scale)


def _planetoid(name: str, root: Path) -> Any:
    from torch_geometric.datasets import Planetoid

    raw = root / name / "raw"
    if not raw.is_dir():
        return Planetoid(str(root), name, transform=T.NormalizeFeatures())[0]
    # PyG writes beside the raw files, which may be somebody else's.
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(raw, Path(scratch) / name / "raw")
        return Planetoid(scratch, name, transform=T.NormalizeFeatures())[0]


def _ogbn_arxiv(root: Path) -> Any:
    from ogb.nodeproppred import PygNodePropPredDataset  # type: ignore[import-not-found, unused-ignore]

    dataset = PygNodePropPredDataset("ogbn-arxiv", root=str(root))
    data = T.ToUndirected()(dataset[0])
    data.y = data.y.squeeze(1)
    for part, index in dataset.get_idx_split().items():
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[index] = True
        data["val_mask" if part == "valid" else f"{part}_mask"] = mask
    return data
