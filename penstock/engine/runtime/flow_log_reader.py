"""Reading the log of a flow, even while a worker writes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, Field, ValidationError

FILE, OLDER = "flow.log", "flow.log.1"

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")


class LogLine(BaseModel):
    """A line in the log of a flow."""

    at: datetime
    level: Level
    message: str
    step: str | None = Field(description="Processor that the line refers to.")
    sink: str | None = Field(description="Sink that the line refers to.")
    fields: dict[str, Any] = Field(description="Further details by name, such as `batch`, `code` or `error`.")


LogPlace = tuple[int | None, int]
"""The position of a log reader: the inode of the file that was read last, and the position in it."""


class LogReader:
    """Reads a log from its oldest line on, or from a place on, and returns each line once."""

    def __init__(self, directory: Path, level: Level = "debug", place: LogPlace = (None, 0)) -> None:
        self._directory = directory
        self._levels = LEVELS[LEVELS.index(level) :]
        # A file is renamed on rotation, and keeps its inode.
        self._file, self._position = place

    @property
    def place(self) -> LogPlace:
        """The position up to which the log was read."""
        return self._file, self._position

    @property
    def gone(self) -> bool:
        """Whether the log was removed, with the other files of a deleted flow."""
        return self._file is not None and not self._directory.exists()

    def look(self) -> list[LogLine]:
        """The new lines."""
        with ExitStack() as stack:
            files = [stack.enter_context(file) for file in self._open()]
            known = [i for i, file in enumerate(files) if self._is_last(file)]
            return [line for file in files[known[0] if known else 0 :] for line in self._rest(file)]

    def _open(self) -> Iterator[BinaryIO]:
        """The existing files, the older one first; a file that is being renamed is listed once."""
        found: dict[int, BinaryIO] = {}
        for name in (FILE, OLDER):
            try:
                file = (self._directory / name).open("rb")
            except OSError:
                continue
            if found.setdefault(_inode(file), file) is not file:
                file.close()
        yield from reversed(found.values())

    def _is_last(self, file: BinaryIO) -> bool:
        # A file may reuse the inode of a removed file: then it is shorter than that file was.
        return _inode(file) == self._file and os.fstat(file.fileno()).st_size >= self._position

    def _rest(self, file: BinaryIO) -> Iterator[LogLine]:
        begin = file.seek(self._position if self._is_last(file) else 0)
        whole, end, _ = file.read().rpartition(b"\n")  # a line may be half written
        self._file, self._position = _inode(file), begin + len(whole) + len(end)
        for text in whole.splitlines():
            try:
                line = LogLine.model_validate_json(text)
            except ValidationError:  # truncated by a crash
                continue
            if line.level in self._levels:
                yield line


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino
