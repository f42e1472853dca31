"""Devices whose speeds are known: measured once, and remembered by this process and by the cache on disk."""

from __future__ import annotations

import threading

import torch

from pyg_sparse.planner.device import Device, device_name, measure
from pyg_sparse.planner.store import Store

_known: dict[str, Device] = {}
_lock = threading.Lock()


def device_speeds(device: torch.device, store: Store | None) -> Device:
    """Measures a device that neither this process nor the cache knows; that takes a fraction of a second."""
    name = device_name(device)
    with _lock:
        if name not in _known:
            _known[name] = _stored(name, store) or _measured(name, device, store)
        return _known[name]


def _key(name: str) -> dict[str, str | int]:
    return {"kind": "device", "device": name}


def _stored(name: str, store: Store | None) -> Device | None:
    record = store.get(_key(name)) if store else None
    if record is None:
        return None
    try:
        found = Device(**record.about)
        numbers = (found.cores, found.cache_bytes, found.launch_ms, found.near_gbs, found.far_gbs, found.copy_gbs)
        return found if found.name == name and all(float(value) > 0 for value in numbers) else None
    except (TypeError, ValueError):
        return None


def _measured(name: str, device: torch.device, store: Store | None) -> Device:
    found = measure(device)
    if store:
        store.put(_key(name), found.as_dict())
    return found
