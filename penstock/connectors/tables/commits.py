"""Reading a table as a stream: commit by commit, file by file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.frames.faults import Fault

Offset = dict[str, Any]
"""A reader's position: `at` is a commit, and `files` the number of its files that were read (`-1`: all).

With `whole` the files are all files of the table as of the commit, and not only those that it added.
"""

ALL = -1

COUNTED = 50
"""Maximum number of commits whose events are counted to determine the backlog of a reader."""

KEPT = COUNTED + 1
"""Maximum number of commits whose files are cached: all counted commits, which are planned next."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table."""

    path: str
    events: int
    """The number of rows in the file."""
    extra: Any = None
    """Additional data that the reader of the file needs."""


class Commits(ABC):
    """The commits in the main history of a table, oldest first."""

    @abstractmethod
    def refresh(self) -> None:
        """Look for new commits."""

    @abstractmethod
    def newest(self) -> int | None:
        """The newest commit; None if there is none."""

    @abstractmethod
    def after(self, commit: int | None) -> Sequence[int]:
        """The commits after a commit, or all commits; a `Fault` with code `gap` if some no longer exist."""

    @abstractmethod
    def has(self, commit: int) -> bool:
        """Whether a commit exists."""

    @abstractmethod
    def before(self, milliseconds: int) -> int | None:
        """The last commit before a time, in milliseconds since 1970; None if there is none."""

    @abstractmethod
    def added(self, commit: int) -> list[DataFile]:
        """The files that a commit added; a `Fault` if it changed other files and must not be skipped."""

    @abstractmethod
    def files(self, commit: int) -> list[DataFile]:
        """All files of the table as of a commit, in a stable order."""


class Plan:
    """Divides the files of a table into micro-batches and tasks."""

    def __init__(self, commits: Commits, max_events: int, task_events: int) -> None:
        self.commits, self.max_events, self.task_events = commits, max_events, task_events
        self._known: dict[tuple[int, bool], list[DataFile]] = {}

    def latest(self, start: Offset, until: int | None = None) -> Offset:
        """The end of the next micro-batch; `start` if there is nothing to read. `until` is a commit."""
        offset, events = start, 0
        for offset_of, files in self._commits(start, until):
            for i, file in enumerate(files):
                offset, events = offset_of(i + 1), events + file.events
                if events >= self.max_events:
                    return offset_of(ALL) if i + 1 == len(files) else offset
            offset = offset_of(ALL)
        return offset

    def between(self, start: Offset, end: Offset) -> list[list[DataFile]]:
        """The files of each task of a micro-batch."""
        tasks: list[list[DataFile]] = []
        events = self.task_events
        for file in self._files(start, end):
            if events >= self.task_events:
                tasks.append([])
                events = 0
            tasks[-1].append(file)
            events += file.events
        return tasks

    def behind(self, start: Offset) -> int | None:
        """The number of events after an offset; None if too many commits would have to be read."""
        if len(self.commits.after(start["at"])) > COUNTED:
            return None
        return sum(file.events for _, files in self._commits(start, None) for file in files)

    def _files(self, start: Offset, end: Offset) -> Iterator[DataFile]:
        for offset_of, files in self._commits(start, end["at"]):
            if offset_of(ALL)["at"] != end["at"] or end["files"] == ALL:
                yield from files
                continue
            # `end` also counts the files that were already read.
            first = start["files"] if start["at"] == end["at"] else 0
            yield from files[: end["files"] - first]

    def _commits(
        self, start: Offset, until: int | None
    ) -> Iterator[tuple[Callable[[int], Offset], list[DataFile]]]:
        """Each commit from an offset on, with its unread files."""
        at, read, whole = start["at"], start["files"], bool(start.get("whole"))
        if at is not None and read != ALL:
            files = self._of(at, whole=whole)
            yield (lambda n: _offset(at, n if n == ALL else read + n, whole=whole)), files[read:]
        if at is not None and at == until:
            return
        for commit in self.commits.after(at):
            yield partial(_offset, commit), self._of(commit, whole=False)
            if commit == until:
                return

    def _of(self, commit: int, *, whole: bool) -> list[DataFile]:
        key = (commit, whole)
        if key not in self._known:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = self.commits.files(commit) if whole else self.commits.added(commit)
        return self._known[key]


def _offset(commit: int, files: int, *, whole: bool = False) -> Offset:
    return {"at": commit, "files": files, **({"whole": True} if whole and files != ALL else {})}


def beginning(commits: Commits, position: str) -> Offset:
    """The offset of a position: earliest, latest, version:N or time:MILLISECONDS."""
    newest = commits.newest()
    kind, _, value = position.partition(":")
    if kind == "version":
        if not commits.has(int(value)):
            raise Fault("unknown_version", f"the table has no version {value}")
        return {"at": int(value), "files": 0}
    if newest is None or kind == "latest":
        return {"at": newest, "files": ALL}
    if kind == "time":
        return {"at": commits.before(int(value)), "files": ALL}
    return {"at": newest, "files": 0, "whole": True}


def gap(message: str) -> Fault:
    """The fault for unread commits that no longer exist."""
    return Fault("gap", message)
