"""Progress bars on standard error, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Progress = Callable[[int, int], None]
"""Called with the amount done and the total amount."""


def bar(title: str, *, quiet: bool = False) -> AbstractContextManager[Progress]:
    """A progress bar in bytes; none if standard error is not a terminal."""
    from rich.progress import DownloadColumn, TransferSpeedColumn

    return _bar(title, quiet, DownloadColumn(), TransferSpeedColumn())


def count_bar(title: str, *, quiet: bool = False) -> AbstractContextManager[Progress]:
    """A progress bar in items; none if standard error is not a terminal."""
    from rich.progress import MofNCompleteColumn

    return _bar(title, quiet, MofNCompleteColumn())


@contextmanager
def _bar(title: str, quiet: bool, *figures: ProgressColumn) -> Iterator[Progress]:
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), *figures, TimeRemainingColumn())
    with Bars(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)
