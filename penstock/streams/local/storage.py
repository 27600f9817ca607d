"""`storage: local`: a log in segment files, appended to by many processes.

stream.json    settings (see config.py)
lock           held by the process that appends, for the append only
tail           the end of the log (see tail.py)
counters       counters of dropped events, by reason
cursors/       one file per reader
NNN.log        segments by base offset; each closed segment also has NNN.index
spill/         segments of a transient stream that found no room in memory
floor          no offset below it is assigned again after the events of a transient stream were lost
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.streams.config import StreamConfig, config_version, read_config
from penstock.streams.counters import Counters
from penstock.streams.cursors import Cursors
from penstock.streams.files import Files
from penstock.streams.local.reader import Reader
from penstock.streams.local.retention import SPILL, Closed, Retention
from penstock.streams.local.tail import Tail
from penstock.streams.local.writer import Writer
from penstock.streams.open_files import OPEN_FILES
from penstock.streams.storage import (
    Append,
    Appended,
    Bounds,
    Cursor,
    Full,
    Moved,
    Place,
    Progress,
    Refusal,
    Span,
    Storage,
    Usage,
    WriteFailed,
)


class LocalStorage(Storage):
    """The log in a directory."""

    kind = "local"
    rests = True
    used = False

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory, self.files = directory, files or Files()
        self.config: StreamConfig = read_config(directory)
        self._config_version = config_version(directory)
        self.spec = self.config.spec
        self.counters = Counters(directory / "counters", self.files, self.require_here, self.opened)
        self.cursor_files = Cursors(directory / "cursors", self.files, self.require_here)
        self.reader = Reader(self.directories, self.tail)
        self.writer = Writer(self)
        self.retention = Retention(self)
        self._closed: tuple[tuple[int, int], list[Closed]] | None = None
        self._seen: tuple[Tail | None, Tail] | None = None

    # Reading

    def bounds(self) -> Bounds:
        tail = self.tail()
        return Bounds(tail.first, tail.next)

    def last_bounds(self) -> Bounds:
        tail = self.writer.tail_file.read() or self.tail()
        return Bounds(tail.first, tail.next)

    def spans(self, start: int) -> Iterator[Span]:
        return self.reader.spans(start)

    def fetch(self, span: Span) -> pa.RecordBatch:
        return self.reader.fetch(span)

    def place(self, span: Span) -> Place | None:
        return self.reader.place(span)

    def transactions(self, first: int, end: int) -> list[tuple[int, int, str, bool]]:
        marks: list[tuple[int, int, str, bool]] = []
        for span in self.spans(first):
            if span.base >= end:
                break
            marks += [
                (first, end, transaction, closed)
                for first, end, transaction, closed in self.reader.marks(span)
            ]
        return marks

    def offset_at(self, time_us: int) -> int:
        return self.reader.offset_at(time_us)

    def tail(self) -> Tail:
        """The end of the log, recovered if the tail is not exact."""
        self.used = True
        tail = self.writer.tail_file.read()
        if tail is not None and tail.exact:
            return tail
        try:
            with self.writer.locked():
                return self.writer.known
        except (Full, WriteFailed):  # nothing can be repaired, but existing events can be read
            if self._seen is None or self._seen[0] != tail:
                self._seen = tail, self.writer.survey(tail).tail
            return self._seen[1]

    def directories(self) -> list[Path]:
        """The directories of segments."""
        found = [self.directory]
        if self.config.memory is not None:
            found += [self.directory / SPILL, self.config.memory]
        return found

    def closed(self) -> list[Closed]:
        """The closed segments, oldest first."""
        tail = self.tail()
        if self._closed is None or self._closed[0] != (tail.first, tail.base):
            segments = list(self.reader.segments(tail).items())
            found = []
            for (base, path), (after, _) in itertools.pairwise(segments):
                with contextlib.suppress(FileNotFoundError):
                    found.append(Closed(base, after, path, path.stat().st_size))
            self._closed = (tail.first, tail.base), found
        return self._closed[1]

    def usage(self) -> Usage:
        tail = self.tail()
        segments = self.reader.segments(tail)
        sizes, memory = 0, 0
        details: list[dict[str, object]] = []
        for base, path in segments.items():
            with contextlib.suppress(FileNotFoundError):
                size = tail.position if base == tail.base else path.stat().st_size
                sizes += size
                memory += size if path.parent == self.config.memory else 0
                details.append({"base": base, "bytes": size, "memory": path.parent == self.config.memory})
        if tail.first == tail.next or not segments:
            return Usage(sizes, len(details), None, None, memory, details)
        ends = [self.reader.index(base, tail) for base in (min(segments), max(segments))]
        oldest, newest = (index for index in ends)
        return Usage(
            sizes,
            len(details),
            oldest.first_us or None if oldest else None,
            (newest.last_us if newest else 0) or (oldest.last_us if oldest else 0) or None,
            memory,
            details,
        )

    # Cursors and counters

    def cursors(self) -> list[Cursor]:
        return self.cursor_files.all()

    def move_cursor(self, cursor: Cursor) -> None:
        self.refresh()
        moved = replace(cursor, at=cursor.at or time.time())
        # The cursor of a reader that has not run is written again when the server starts.
        kept = cursor.has_run and not self.config.transient
        try:
            self.cursor_files.move(moved, durable=kept and self.spec.wal.sync, whole=kept)
        except OSError as error:
            raise WriteFailed(f"the cursor of '{cursor.reader}' was not kept: {error.strerror}") from error

    def keep_cursors(self) -> None:
        """Sync the cursors before segments that were read are removed."""
        if not self.config.transient:
            with contextlib.suppress(OSError):  # a full log must get room regardless
                self.cursor_files.keep()

    def forget_cursor(self, reader: str) -> None:
        self.cursor_files.forget(reader)

    def count(self, **counts: int) -> None:
        self.counters.add(counts)

    def counts(self) -> Mapping[str, int]:
        return self.counters.all()

    def set_cursors_aside(self) -> list[Path]:
        """Rename damaged cursors."""
        return self.cursor_files.set_aside()

    # Writing

    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        self.used = True
        return self.writer.write(appends)

    def progress(self, producer: str) -> Progress:
        return self.writer.progress(producer)

    def flush(self) -> None:
        self.writer.flush()

    def maintain(self) -> None:
        self.writer.maintain()

    def close(self) -> None:
        with self.writer.mutex:
            self.writer.close()
            self.counters.close()
            self.reader.forget()  # closes its segments, unless a reader is in the middle of one
        OPEN_FILES.closed(self)

    # Descriptors

    def opened(self) -> None:
        """Register the opened files; other logs close theirs if the process has too many."""
        OPEN_FILES.opened(self)

    @property
    def open_files(self) -> int:
        return self.writer.open_files + self.counters.open_files + self.reader.open_files

    def rest(self) -> bool:
        if not self.writer.mutex.acquire(blocking=False):
            return False
        try:
            if not self.writer.rest():
                return False
            self.reader.forget()
            return self.counters.rest()
        finally:
            self.writer.mutex.release()

    # Settings

    def require_here(self) -> None:
        """Raise `Moved` if the stream is in another storage. Call it under a lock that a move needs."""
        try:
            version = config_version(self.directory)
            moved = version != self._config_version and read_config(self.directory).spec.storage != self.kind
        except (OSError, ValueError):  # a deleted stream
            return
        if moved or self.spec.storage != self.kind:
            raise Moved(f"stream '{self.config.id}' is no longer in '{self.kind}'")

    def refresh(self) -> None:
        if self.writer.mutex.acquire(blocking=False):  # else the current writer does it
            try:
                with contextlib.suppress(OSError, ValueError):  # a write would report it
                    self.reconfigure()
            finally:
                self.writer.mutex.release()

    def reconfigure(self) -> None:
        """Apply the current settings of the directory."""
        version = config_version(self.directory)
        if version != self._config_version:
            self.config, self._config_version = read_config(self.directory), version
            self.spec = self.config.spec
            self.writer.floor.forget()
            self.forget_listing()

    def forget_listing(self) -> None:
        """Drop the cached listing of the directory."""
        self._closed = None
        self.reader.forget()
