"""One record of the cache: a safetensors file whose metadata hold JSON and a checksum. Nothing in it is executed."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

import pyg_sparse

VERSION = 1
Key = Mapping[str, str | int]


class BrokenRecord(Exception):
    """What is wrong with a file that should be a record."""


@dataclass(frozen=True)
class Header:
    """What a record says of itself.

    Attributes:
        library: the version of pyg_sparse that wrote it.
        created: when, in seconds since 1970.
        key: what it is the answer to.
        about: the answer, but for its tensors.
    """

    library: str
    created: float
    key: dict[str, str | int]
    about: dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A record as it was put.

    Attributes:
        about: a dictionary of JSON's types.
        tensors: on the CPU. Their memory is the file's, mapped: it is read as it is used, and writing to a tensor does
            not write to the file.
    """

    about: dict[str, Any]
    tensors: dict[str, Tensor]


def canonical(key: Key) -> str:
    """The same text for equal keys."""
    for name, value in key.items():
        if not isinstance(name, str) or not isinstance(value, str | int) or isinstance(value, bool):
            raise TypeError(f"key holds {name!r}: {value!r}; allowed are names with a str or an int each")
    return json.dumps(dict(key), sort_keys=True)


def write_record(path: Path, key: Key, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Writes to ``path``, which other processes must not see yet.

    Raises:
        TypeError: if about is not JSON.
        OSError, SafetensorError: if the file cannot be written.
    """
    said = {"version": VERSION, "library": pyg_sparse.__version__, "created": time.time()}
    try:
        text = json.dumps(said | {"key": dict(key), "about": dict(about)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"about={about!r} must hold JSON's types only: {error}") from error
    plain = _separate(tensors)
    metadata = {"record": text, "checksum": _checksum(text, plain)}
    safetensors.torch.save_file(plain, path, metadata=metadata)


def read_header(path: Path) -> Header:
    """Reads what :func:`read_record` reads, but for the tensors and the checksum."""
    return _read(path, whole=False)[0]


def read_record(path: Path) -> tuple[Header, Record]:
    """Reads and checks a record.

    Raises:
        BrokenRecord: if the file is not a whole, unchanged record of this version.
        OSError: if it cannot be read.
    """
    header, tensors = _read(path, whole=True)
    return header, Record(header.about, tensors)


def _read(path: Path, whole: bool) -> tuple[Header, dict[str, Tensor]]:
    # O_NONBLOCK: opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BrokenRecord("is not a regular file")
        if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
            raise BrokenRecord("could have been written by another user")
        # The file is opened twice, and path may have become another's in between; this name stays the same file's.
        return _parse(f"/proc/self/fd/{descriptor}", whole)
    # RuntimeError: torch refuses a tensor, or JSON is nested too deeply. AttributeError: torch lacks a dtype.
    except (safetensors.SafetensorError, ValueError, RuntimeError, AttributeError, MemoryError) as error:
        raise BrokenRecord(f"is not a readable record: {str(error)[:200]}") from error
    finally:
        os.close(descriptor)


def _parse(name: str, whole: bool) -> tuple[Header, dict[str, Tensor]]:
    with safetensors.safe_open(name, framework="pt", device="cpu") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()} if whole else {}  # noqa: SIM118
    text, checksum = metadata.get("record", ""), metadata.get("checksum", "")
    header = _header(text)
    if whole and _checksum(text, tensors) != checksum:
        raise BrokenRecord("does not have the checksum that it names")
    return header, tensors


def _header(text: str) -> Header:
    said = json.loads(text)
    if not isinstance(said, dict) or said.get("version") != VERSION:
        version = said.get("version") if isinstance(said, dict) else None
        raise BrokenRecord(f"has version {str(version)[:20]}, this library reads {VERSION}")
    library, created, key, about = (said.get(name) for name in ("library", "created", "key", "about"))
    if not (isinstance(library, str) and isinstance(created, float) and isinstance(about, dict)):
        raise BrokenRecord("lacks the library's version, the time, or what it is about")
    if not (isinstance(key, dict) and all(type(value) in (str, int) for value in key.values())):
        raise BrokenRecord("has a key of other types than str and int")
    return Header(library, created, key, about)


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, each contiguous in memory of its own, as safetensors wants them."""
    plain: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        # contiguous() leaves the stride of an axis of size 1 as it is, which no view of bytes takes.
        if own.untyped_storage().nbytes() != own.nbytes or own.data_ptr() in seen or 1 in own.shape:
            own = own.clone(memory_format=torch.contiguous_format)
        seen.add(own.data_ptr())
        plain[name] = own
    return plain


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """128 bits of all that a record holds. Found by the graphs' own hash, which reads as fast as memory allows."""
    found = blake2b(text.encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        data = tensor.reshape(-1).view(torch.uint8)
        whole = data.numel() // 16 * 16
        pairs = data[:whole].view(torch.int64).view(-1, 2).t()
        found.update(torch.ops.pyg_sparse.fingerprint(pairs).numpy().tobytes())
        found.update(data[whole:].numpy().tobytes())
    return found.hexdigest()
