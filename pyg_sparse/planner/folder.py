"""Where the cache lies, how large it may become, and whether what lies there can be trusted."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

FOLDER = "PYG_SPARSE_CACHE"
BYTES = "PYG_SPARSE_CACHE_BYTES"
DEFAULT_BYTES = 8 << 30
OFF = ("off", "0")


class CacheWarning(UserWarning):
    """The cache cannot be used, or holds something it should not. Plans are then built as if there were none."""


def warn(problem: str) -> None:
    """Unless told otherwise, Python shows equal warnings from one line once."""
    warnings.warn(problem, CacheWarning, stacklevel=2)


def default_folder() -> Path | None:
    """The folder that ``PYG_SPARSE_CACHE`` names, or else the user's cache folder; None if the cache is off."""
    named = os.environ.get(FOLDER)
    if named:
        return None if named in OFF else Path(named).absolute()
    from platformdirs import user_cache_path  # here: not needed where a folder is named

    try:
        folder = user_cache_path("pyg_sparse")
    except RuntimeError:  # of newer versions; older ones leave "~" as it is
        folder = Path("~")
    if not folder.is_absolute():
        warn(f"plans are not kept on disk: this user has no home folder; name a folder in {FOLDER}")
        return None
    return folder


def default_bytes() -> int:
    """``PYG_SPARSE_CACHE_BYTES``, or else 8 GiB."""
    text = os.environ.get(BYTES) or str(DEFAULT_BYTES)
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{BYTES}={text!r} must be a positive number of bytes, such as {DEFAULT_BYTES}")
    return int(text)


def why_unsafe(folder: Path) -> str | None:
    """Why records in ``folder`` may be another user's, who could put wrong plans there; None if they are not.

    Raises:
        OSError: if the folder does not exist or cannot be seen.
    """
    status = os.stat(folder)
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to {os.geteuid()}"
    if status.st_mode & stat.S_IWOTH:
        return "every user may write to it"
    return None
