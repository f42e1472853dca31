"""One backend trained on one data set, in a process of its own."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.timing import elapsed_ms

from .data import Task, is_synthetic, load
from .memory import peak_mb, reset_peak
from .model import BACKENDS, GCN, Backend

WARMUP_EPOCHS = 3


@dataclass(frozen=True)
class Config:
    dataset: str
    root: Path
    scale: float
    device: torch.device
    dtype: torch.dtype
    amp: torch.dtype | None
    hidden: int
    layers: int
    epochs: int
    lr: float
    dropout: float
    weight_decay: float
    seeds: tuple[int, ...]

    @property
    def synthetic(self) -> bool:
        return is_synthetic(self.dataset)


@dataclass
class Run:
    """What came out; ``why`` says why nothing did.

    Times are of whole epochs: forward, backward and step, without evaluation and warm-up. ``losses`` (one an
    epoch) and ``accuracy`` (epoch, train, val, test) are the first seed's; ``test_acc`` has each seed's last.
    """

    impl: str
    why: str | None = None
    about: str = ""
    num_nodes: int | None = None
    num_edges: int | None = None
    preprocess_ms: float | None = None
    peak_mb: float | None = None
    ms_samples: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracy: list[tuple[float, ...]] = field(default_factory=list)
    test_acc: list[float] = field(default_factory=list)


def run(config: Config, impl: str, *, describe: bool) -> Run:
    """Load the data set and train on it; a failure of the backend is a result, one of the data set is not."""
    task = load(config.dataset, root=config.root, scale=config.scale, seed=config.seeds[0], device=config.device)
    if describe:
        print(task.describe(), flush=True)
    result = Run(impl, about=task.about, num_nodes=len(task.x), num_edges=task.edge_index.size(1))
    with recorded(result):
        task.x = task.x.to(config.dtype)
        backend, result.preprocess_ms = prepare(config, impl, task)
        del task.edge_index  # the backend has what it needs of it
        train(config, task, backend, result)
    return result


@contextmanager
def recorded(result: Run) -> Iterator[None]:
    """Turns a failure into the result's reason."""
    try:
        yield
    except Exception as error:
        print(f"  failed: {type(error).__name__}: {error}")
        first_sentence = str(error).partition("\n")[0].partition(". ")[0]
        result.why = f"{type(error).__name__}: {first_sentence}"


def prepare(config: Config, impl: str, task: Task) -> tuple[Backend, float | None]:
    """The backend on the task's graph, and how long that took in ms: None for pyg, which prepares nothing."""
    print(f"\n{impl}: {BACKENDS[impl].__doc__}", flush=True)
    make = partial(BACKENDS[impl], task.edge_index, len(task.x), config.dtype)
    backend, preprocess_ms = elapsed_ms(make, config.device)
    if impl == "pyg_sparse":
        print(backend.graph)
    if impl == "pyg":
        return backend, None
    print(f"  graph prepared in {preprocess_ms:,.0f} ms")
    return backend, preprocess_ms


def train(config: Config, task: Task, backend: Backend, result: Run) -> None:
    """A model for each seed; everything but the preparation goes into ``result``."""
    reset_peak(config.device)
    for seed in config.seeds:
        _train_seed(config, task, backend, seed, result)
    result.peak_mb = peak_mb(config.device)
    if len(config.seeds) > 1:
        mean, spread = statistics.fmean(result.test_acc), statistics.stdev(result.test_acc)
        print(f"  test accuracy over {len(config.seeds)} seeds: {mean:.3f} +- {spread:.3f}")


def _train_seed(config: Config, task: Task, backend: Backend, seed: int, result: Run) -> None:
    first = seed == config.seeds[0]
    torch.manual_seed(seed)
    widths = [task.x.size(1), *[config.hidden] * (config.layers - 1), task.classes]
    model = GCN(backend.conv, widths, config.dropout).to(config.device, config.dtype)
    groups: list[dict[str, Any]] = [{"params": layer.parameters()} for layer in model.layers]
    groups[0]["weight_decay"] = config.weight_decay
    optimizer = torch.optim.Adam(groups, lr=config.lr)
    train_index = task.masks["train"].nonzero().squeeze(1)
    train_y = task.y[train_index]

    def forward() -> Tensor:
        with torch.autocast(config.device.type, dtype=config.amp, enabled=config.amp is not None):
            return model(task.x, backend.graph)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(forward()[train_index].to(config.dtype), train_y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for epoch in range(1, config.epochs + 1):
        model.train()
        loss, ms = elapsed_ms(step, config.device)
        if epoch > min(WARMUP_EPOCHS, config.epochs - 1):
            result.ms_samples.append(ms)
        if first:
            result.losses.append(float(loss))
        last = epoch == config.epochs
        if last or (first and (epoch == 1 or epoch % max(1, config.epochs // 10) == 0)):
            model.eval()
            with torch.no_grad():
                accuracy = _accuracy(forward(), task)
            parts = ", ".join(f"{part} {value:.3f}" for part, value in accuracy.items())
            print(
                f"  seed {seed}, epoch {epoch:4d}: loss {loss:.4f}, accuracy {parts}, {ms:,.1f} ms",
                flush=True,
            )
            if first:
                result.accuracy.append((epoch, *accuracy.values()))
            if last:
                result.test_acc.append(accuracy["test"])


def _accuracy(logits: Tensor, task: Task) -> dict[str, float]:
    right = logits.argmax(dim=1) == task.y
    return {part: float(right[mask].double().mean()) for part, mask in task.masks.items()}
