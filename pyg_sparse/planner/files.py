"""The files of the cache's folder, any of which another process may remove at any time."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

RECORD = re.compile(r"[0-9a-f]{32}\.safetensors")
UNFINISHED = re.compile(r"[0-9a-f]{32}\.\w+\.tmp")


class File(NamedTuple):
    """A record, or a folder in which one is being written, or was when its writer died."""

    path: Path
    bytes: int
    last_used: float  # or written to; seconds since 1970


def records(folder: Path) -> list[File]:
    """The one used longest ago first."""
    return sorted(_files(folder, RECORD), key=lambda file: file.last_used)


def unfinished(folder: Path) -> list[File]:
    return [
        writing._replace(bytes=sum(file.bytes for file in _files(writing.path, re.compile(".*"))))
        for writing in _files(folder, UNFINISHED)
    ]


def remove(file: File) -> bool:
    """Whether it was this call that removed it."""
    if UNFINISHED.fullmatch(file.path.name):
        shutil.rmtree(file.path, ignore_errors=True)
        return not file.path.exists()
    try:
        file.path.unlink()
    except OSError:
        return False
    return True


def touch(path: Path) -> None:
    """Marks a record as used now."""
    now = time.time_ns()  # finer than the file system's own clock
    with suppress(OSError):  # a read-only folder
        os.utime(path, ns=(now, now))


def _files(folder: Path, name: re.Pattern[str]) -> Iterator[File]:
    try:
        paths = [path for path in folder.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return
    for path in paths:
        with suppress(OSError):
            status = os.lstat(path)
            yield File(path, status.st_size, status.st_mtime)
