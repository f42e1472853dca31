"""When a layer must run PyG's own code: something asks for the messages, which a plan never forms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

_HOOKS = (
    "_propagate_forward_pre_hooks",
    "_propagate_forward_hooks",
    "_message_forward_pre_hooks",
    "_message_forward_hooks",
    "_aggregate_forward_pre_hooks",
    "_aggregate_forward_hooks",
    "_message_and_aggregate_forward_pre_hooks",
    "_message_and_aggregate_forward_hooks",
)
_METHODS = ("message", "aggregate", "update", "message_and_aggregate")


def pyg_path_reason(conv: MessagePassing, base: type, x: Tensor) -> str | None:
    """What keeps ``conv``, which stands for ``base``, from aggregating ``x`` on a plan; None if nothing does."""
    if torch.jit.is_tracing():
        return "torch.jit.trace is recording"
    if conv.explain:
        return "explain mode is on"
    if conv.decomposed_layers > 1:
        return f"decomposed_layers is {conv.decomposed_layers}"
    if conv.aggr not in ("add", "sum"):
        return f"aggr is {conv.aggr!r}"
    if conv.node_dim not in (-2, x.dim() - 2):
        return f"node_dim is {conv.node_dim}"
    if any(getattr(conv, hooks) for hooks in _HOOKS):
        return "message passing hooks are registered"
    cls: Any = type(conv)
    for name in _METHODS:
        if getattr(cls, name) is not getattr(base, name) or name in conv.__dict__:
            return f"{name!r} is overridden"
    # PyG replaces `propagate` by one it generates; a class's own it keeps under both names.
    own_propagate = cls._orig_propagate is cls._jinja_propagate and cls._orig_propagate is not MessagePassing.propagate
    if own_propagate or "propagate" in conv.__dict__:
        return "'propagate' is overridden"
    return None
