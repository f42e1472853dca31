"""How far a command is, on stderr: a bar on a terminal that has rich, else a line for each step."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from pyg_sparse.cli.show import is_rich


class Progress:
    """A context in which :meth:`step` tells of each step."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        if is_rich(sys.stderr):
            from rich import progress
            from rich.console import Console

            columns = (progress.SpinnerColumn(), progress.BarColumn(), progress.MofNCompleteColumn())
            what = progress.TextColumn("{task.description}", markup=False)
            self._bar = progress.Progress(*columns, what, console=Console(stderr=True), transient=True)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("looking", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, done: int, total: int, what: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=what)
        else:
            print(f"{done}/{total} {what}", file=sys.stderr, flush=True)
