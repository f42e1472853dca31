"""The cache on disk: a folder of records that many processes may use at once, without locks.

A record is written in a folder of its own beside the others and renamed, so a reader finds all of it or nothing. What
the disk or another process may do to it costs a warning and a plan that is built again, never an exception.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from torch import Tensor

from pyg_sparse.planner import files
from pyg_sparse.planner.folder import default_bytes, default_folder, warn, why_unsafe
from pyg_sparse.planner.record import (
    BrokenRecord,
    Header,
    Key,
    Record,
    canonical,
    read_header,
    read_record,
    write_record,
)

_ABANDONED_AFTER = 3600  # seconds: no writer takes that long


@dataclass(frozen=True)
class Entry:
    """A record in the folder.

    Attributes:
        path: its file.
        bytes: the file's size.
        last_used: when it was last put or got, in seconds since 1970.
        header: its key, and when and by which version of the library it was written; None if it is broken.
    """

    path: Path
    bytes: int
    last_used: float
    header: Header | None


class Removed(NamedTuple):
    """How many records went, and their bytes."""

    records: int
    bytes: int


class Store:
    """A folder of records, each found by its key.

    Args:
        folder: made when the first record is put, for this user alone. It must be this user's, and no other's to write
            to: a plan from elsewhere would be trusted to be that of the graph.
        max_bytes: the size up to which the folder may grow; beyond, the records used longest ago are removed. While
            several processes write at once, it may be exceeded by what they write.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes={max_bytes!r} must be positive")
        self.folder = folder
        self.max_bytes = max_bytes

    @classmethod
    def default(cls) -> Store | None:
        """The store that the environment names (docs/cache.md); None if it is off or there is no home folder.

        Raises:
            ValueError: if ``PYG_SPARSE_CACHE_BYTES`` is not a positive number.
        """
        max_bytes = default_bytes()
        folder = default_folder()
        return None if folder is None else cls(folder, max_bytes)

    def get(self, key: Key) -> Record | None:
        """The record put under ``key``, whole and unchanged, or None.

        What is wrong with a file is warned of, and the file removed. The content of ``about`` and the meaning of the
        tensors are the caller's to check.

        Raises:
            TypeError: if the key holds anything but str and int.
        """
        wanted = canonical(key)
        path = self._path(wanted)
        try:
            if unsafe := why_unsafe(self.folder):
                warn(f"{self.folder} is not used as a cache: {unsafe}")
                return None
            header, record = read_record(path)
            if canonical(header.key) != wanted:
                raise BrokenRecord("is the record of another key")
        except FileNotFoundError:
            return None
        except BrokenRecord as problem:
            with suppress(OSError):
                path.unlink()
            warn(f"{path} {problem}; it is not used")
            return None
        except OSError as error:
            warn(f"{path} cannot be read: {error}")
            return None
        files.touch(path)
        return record

    def put(self, key: Key, about: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> bool:
        """Keeps a record, in place of an earlier one of the same key; False, with a warning, if that is impossible.

        Nothing is synchronised with the disk: a record that a power failure cuts short is found by its checksum.

        Args:
            key: what :meth:`get` will be asked for.
            about: JSON's types only.
            tensors: any dtypes, shapes and devices.

        Raises:
            TypeError: if the key or ``about`` holds anything else.
        """
        path = self._path(canonical(key))
        tensors = tensors or {}
        size = sum(tensor.nbytes for tensor in tensors.values())
        if size > self.max_bytes:
            warn(f"a record of {size:,} bytes is not kept: the cache may hold {self.max_bytes:,}")
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if unsafe := why_unsafe(self.folder):
                warn(f"{self.folder} is not used as a cache: {unsafe}")
                return False
            with tempfile.TemporaryDirectory(
                dir=self.folder, prefix=f"{path.stem}.", suffix=".tmp", ignore_cleanup_errors=True
            ) as unfinished:
                written = Path(unfinished, path.name)
                write_record(written, key, about, tensors)
                files.touch(written)
                os.replace(written, path)
        except (OSError, SafetensorError) as error:
            warn(f"nothing is kept in {self.folder}: {_reason(error)}")
            return False
        self._evict()
        return True

    def entries(self) -> list[Entry]:
        """All records, the one used longest ago first."""
        return [Entry(*file, _header_of(file.path)) for file in files.records(self.folder)]

    def verify(self) -> list[tuple[Entry, str | None]]:
        """All records, each with what is wrong with it, or None; without those that are gone meanwhile."""
        checked = []
        for entry in self.entries():
            with suppress(FileNotFoundError):
                checked.append((entry, self._problem(entry)))
        return checked

    def clear(self, older_than: float = 0) -> Removed:
        """Removes records, and what killed processes have left.

        Args:
            older_than: leaves what was used in this many last seconds; 0: leaves nothing.
        """
        before = time.time() - older_than if older_than else math.inf  # clocks of other machines may be ahead
        old = [file for file in files.records(self.folder) if file.last_used <= before]
        removed = [file.bytes for file in old if files.remove(file)]
        for file in files.unfinished(self.folder):
            if file.last_used <= before:
                files.remove(file)
        return Removed(len(removed), sum(removed))

    def _problem(self, entry: Entry) -> str | None:
        try:
            header, _ = read_record(entry.path)
            if self._path(canonical(header.key)) != entry.path:
                return "is the record of another key"
        except FileNotFoundError:
            raise
        except (BrokenRecord, OSError) as problem:
            return str(problem)
        return None

    def _path(self, key: str) -> Path:
        return self.folder / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.safetensors"

    def _evict(self) -> None:
        abandoned = time.time() - _ABANDONED_AFTER
        total = 0
        for file in files.unfinished(self.folder):
            if file.last_used < abandoned:
                files.remove(file)
            else:
                total += file.bytes
        records = files.records(self.folder)
        total += sum(file.bytes for file in records)
        for file in records:
            if total <= self.max_bytes:
                break
            files.remove(file)
            total -= file.bytes


def _header_of(path: Path) -> Header | None:
    try:
        return read_header(path)
    except (BrokenRecord, OSError):
        return None


def _reason(error: Exception) -> str:
    """Without the name of the temporary folder, so that the same warning is not shown for each."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
