"""Devices whose speeds are known: measured once, and remembered by this process and by the cache on disk."""

from __future__ import annotations

import threading
from dataclasses import replace

import torch

import pyg_sparse
from pyg_sparse.planner.device import Device, device_name, measure
from pyg_sparse.planner.folder import warn
from pyg_sparse.planner.store import Store

_known: dict[str, Device] = {}
_lock = threading.Lock()
_AGREE = 1.5


def device_speeds(device: torch.device, store: Store | None) -> Device:
    """Measures a device that neither this process nor the cache knows; that takes a fraction of a second."""
    name = device_name(device)
    with _lock:
        if name not in _known:
            _known[name] = _stored(name, store) or _measured(name, device, store)
        return _known[name]


def _key(name: str) -> dict[str, str | int]:
    return {"kind": "device", "device": name, "library": pyg_sparse.__version__}


def _stored(name: str, store: Store | None) -> Device | None:
    record = store.get(_key(name)) if store else None
    if record is None:
        return None
    try:
        found = Device(**record.about)
    except TypeError as problem:
        warn(f"the cache's speeds of {name} are not used: {problem}")
        return None
    numbers = {key: value for key, value in record.about.items() if key not in ("kind", "name", "wait_us")}
    positive = all(type(value) in (int, float) and 0 < value < float("inf") for value in numbers.values())
    wait = found.wait_us
    if found.name != name or found.kind not in ("cpu", "cuda") or not positive or type(wait) not in (int, float):
        warn(f"the cache's speeds of {name} are not used: {record.about}")
        return None
    return found


def _measured(name: str, device: torch.device, store: Store | None) -> Device:
    """Measured twice: where the two differ the machine has other work, and the speeds serve this process alone."""
    first, second = measure(device), measure(device)
    speeds = {key: max(getattr(first, key), getattr(second, key)) for key in ("near_gbs", "far_gbs", "copy_gbs")}
    waits = {key: min(getattr(first, key), getattr(second, key)) for key in ("launch_ms", "wait_us")}
    found = replace(first, **speeds, **waits)
    agree = all(min(getattr(first, k), getattr(second, k)) * _AGREE > speed for k, speed in speeds.items())
    if store and agree:
        store.put(_key(name), found.as_dict())
    return found
