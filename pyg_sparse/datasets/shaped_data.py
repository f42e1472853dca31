"""Features and labels for the synthetic graphs, so that a graph network can be trained on them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from .shaped import shape_of, shaped_graph

# Features vary in few directions, as averaged word vectors do, so that a linear model needs few samples.
LATENT = 32
# Spread of the class centres in units of the noise: a linear model is right about half the time.
SIGNAL = 0.4
TRAIN, VAL = 0.66, 0.10


def shaped_data(name: str, *, scale: float = 1.0, seed: int = 0, device: torch.device | str = "cpu") -> Data:
    """A synthetic node classification task on :func:`shaped_graph`; arguments as there.

    Class ``i`` is made of the communities ``i``, ``i + classes`` and so on. A node's features are its class's
    centre plus so much noise that a model which sees only them is right about half the time; neighbours often
    share the class, so averaging over them removes the noise, and a GCN is right nearly always. That holds
    for all but proteins, whose 8 features are too few for its 112 classes.

    Returns:
        ``x`` float32 ``[N, features]``, ``edge_index`` int64 ``[2, E]``, ``y`` int64 ``[N]``, and
        ``train_mask``, ``val_mask``, ``test_mask`` bool ``[N]``: 66 / 10 / 24 % of the nodes, Reddit's split.
    """
    shape = shape_of(name)
    graph = shaped_graph(name, scale=scale, seed=seed, device=device)
    host = torch.Generator().manual_seed(seed)
    y = (graph.community % shape.classes).cpu()
    latent = SIGNAL * torch.randn(shape.classes, LATENT, generator=host)[y]
    latent += torch.randn(graph.num_nodes, LATENT, generator=host)
    mixing = torch.randn(LATENT, shape.features, generator=host) / LATENT**0.5
    split = torch.rand(graph.num_nodes, generator=host)

    def there(t: Tensor) -> Tensor:
        return t.to(graph.edge_index.device)

    return Data(
        x=there(latent) @ there(mixing),
        edge_index=graph.edge_index,
        y=there(y),
        train_mask=there(split < TRAIN),
        val_mask=there((split >= TRAIN) & (split < TRAIN + VAL)),
        test_mask=there(split >= TRAIN + VAL),
        num_nodes=graph.num_nodes,
    )
