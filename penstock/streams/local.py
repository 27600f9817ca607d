"""`storage: local`: a log in segment files, appended to by many processes.

stream.json    settings (see config.py)
lock           held by the process that appends, for the append only
tail           where the log ends (see tail.py)
counters       what was dropped, and why
cursors/       one file per reader
NNN.log        segments by base offset; NNN.index beside each closed one
spill/         segments of a transient stream that found no room in memory
floor          no offset below it is given out again after a transient stream was lost
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import structlog

from penstock.streams import clock
from penstock.streams.config import StreamConfig, config_version, read_config
from penstock.streams.counters import Counters
from penstock.streams.cursors import Cursors
from penstock.streams.files import Files
from penstock.streams.frames import Body, Frame
from penstock.streams.framing import frame_appends, joined
from penstock.streams.lock import StreamLock
from penstock.streams.producers import Producers, highest
from penstock.streams.reader import Reader
from penstock.streams.recovery import Survey, count_damaged, follow, leftovers, load_producers, survey
from penstock.streams.retention import SPILL, Closed, Retention
from penstock.streams.segments import build_index, index_path, list_segments, load_index, segment_path
from penstock.streams.storage import (
    FLUSH_S,
    Append,
    Appended,
    Bounds,
    Cursor,
    Fenced,
    Full,
    Span,
    Storage,
    Usage,
    WriteFailed,
)
from penstock.streams.tail import Tail, TailFile

log = structlog.get_logger()

BACKWARDS_US = 60_000_000
"""A clock that went back by less than this is waited for by repeating the last time."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

FLOOR = "floor"
RESERVED = 1_000_000
"""Offsets that a transient stream reserves at once, so that a restart never gives one out again."""


class LocalStorage(Storage):
    """The log in a directory."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory, self.files = directory, files or Files()
        self.config: StreamConfig = read_config(directory)
        self._config_version = config_version(directory)
        self.spec = self.config.spec
        self._tail_file = TailFile(directory / "tail", self.files)
        self._lock = StreamLock(directory / "lock", self.files)
        self._mutex = threading.RLock()
        self._held = 0
        self.counters = Counters(directory / "counters", self.files)
        self._cursors = Cursors(directory / "cursors", self.files)
        self.reader = Reader(self.directories, self.tail)
        self._fd: int | None = None
        self._path = directory
        self._base = -1
        self._began_us = 0  # when the active segment got its first event
        self._closed: tuple[tuple[int, int], list[Closed]] | None = None
        self._indexed: set[int] = set()
        self._seen: tuple[Tail | None, Tail] | None = None
        self._known = Tail(0, 0, -1, 0)
        self._producers = Producers()
        self._last_us = 0
        self._dirty_since: float | None = None
        self._sick = self._tidy = False
        self._reserved = 0
        self.retention = Retention(self)

    # Reading

    def bounds(self) -> Bounds:
        tail = self.tail()
        return Bounds(tail.first, tail.next)

    def spans(self, start: int) -> Iterator[Span]:
        return self.reader.spans(start)

    def fetch(self, span: Span) -> pa.RecordBatch:
        return self.reader.fetch(span)

    def transactions(self, first: int, next: int) -> list[tuple[int, int, str, bool]]:
        marks: list[tuple[int, int, str, bool]] = []
        for span in self.spans(first):
            if span.base >= next:
                break
            marks += [(first, next, id, closed) for first, next, id, closed in self.reader.marks(span)]
        return marks

    def offset_at(self, time_us: int) -> int:
        return self.reader.offset_at(time_us)

    def tail(self) -> Tail:
        """Where the log ends; recovered first if nothing reliable says so."""
        tail = self._tail_file.read()
        if tail is not None and tail.exact:
            return tail
        try:
            with self.locked():
                return self._known
        except (Full, WriteFailed):  # nothing can be mended, but what is there can be read
            if self._seen is None or self._seen[0] != tail:
                self._seen = tail, self._survey(tail).tail
            return self._seen[1]

    def directories(self) -> list[Path]:
        """Where segments may lie."""
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

    def active(self) -> Closed:
        """The active segment, as if it were closed."""
        tail = self._known
        return Closed(tail.base, tail.next, self._path, tail.position)

    def active_in(self, directory: Path | None) -> bool:
        """Whether the active segment lies in a directory."""
        return self._path.parent == directory

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
        return self._cursors.all()

    def move_cursor(self, cursor: Cursor) -> None:
        self.refresh()
        moved = replace(cursor, at=cursor.at or time.time())
        durable = self.spec.wal.sync and not self.config.transient
        try:
            self._cursors.move(moved, durable=durable, whole=not self.config.transient)
        except OSError as error:
            raise WriteFailed(f"the cursor of '{cursor.reader}' was not kept: {error.strerror}") from error

    def keep_cursors(self) -> None:
        """Have on disk how far was read, before what was read is removed."""
        if not self.config.transient:
            with contextlib.suppress(OSError):  # a full log must get room even so
                self._cursors.keep()

    def forget_cursor(self, reader: str) -> None:
        self._cursors.forget(reader)

    def count(self, **counts: int) -> None:
        self.counters.add(counts)

    def counts(self) -> Mapping[str, int]:
        return self.counters.all()

    # Writing

    def write(self, appends: Sequence[Append]) -> list[Appended | Fenced]:
        with self.locked():
            self._reconfigure()
            producers = self._producers.copy() if any(a.producer for a in appends) else self._producers
            frames, results = frame_appends(appends, self._known.next, self._now(), producers)
            if frames:
                parts = [part for frame in frames for part in frame.encode()]
                size = sum(len(part) for part in parts)
                events = sum(frame.body.count for frame in frames)
                self.retention.make_room(size, events)
                if self.must_roll(size, events):
                    self._roll(size, events)
                self._put(parts, frames[-1].base + frames[-1].body.count)
                self._producers = producers
                self._last_us = frames[-1].time_us
                self._began_us = self._began_us or self._last_us
            return results

    def maintain(self) -> None:
        with self.locked():
            self._reconfigure()
            if self.must_roll(0, 0):
                self._roll()
            self.retention.expire()
            if not self.config.transient:
                self._bring_to_disk()
            self._index_closed()
            self.flush()

    def settle(self, *, close: bool) -> None:
        """Leave nothing behind the published end; `close` the active segment, so that it changes no more."""
        with self.locked():
            self._trim()
            if close:
                self._roll()

    def set_cursors_aside(self) -> list[Path]:
        """Keep damaged cursors under another name."""
        return self._cursors.set_aside()

    def flush(self) -> None:
        """Have on disk what was acknowledged without a sync."""
        with self._mutex:
            if self._dirty_since is not None and self._fd is not None:
                self._dirty_since = None
                if self.active_in(self.config.memory):
                    return
                try:
                    self.files.sync(self._fd)
                except OSError as error:
                    self._distrust(error)

    def close(self) -> None:
        with self._mutex:
            self.flush()
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
            self._lock.close()
            self._tail_file.close()
            self.counters.close()

    def _put(self, parts: list[bytes | pa.Buffer], next: int) -> None:
        """Write frames behind the last ones, and let them be seen."""
        assert self._fd is not None
        position = end = self._known.position
        syncing = False
        try:
            self.files.step("append")
            self._trim()
            if self.config.transient:
                self._reserve(next)
            for data in joined(parts):
                self.files.write(self._fd, data, end)
                end += len(data)
            self.files.step("written")
            self._dirty_since = self._dirty_since or time.monotonic()
            if self.spec.wal.sync or time.monotonic() - self._dirty_since >= FLUSH_S:
                syncing = True
                if not self.active_in(self.config.memory):
                    self.files.sync(self._fd)
                self._dirty_since = None
        except OSError as error:
            self._undo(position, error, harmless=error.errno in NO_ROOM and not syncing)
        self.files.step("publish")
        self._publish(replace(self._known, next=next, position=end))

    def _trim(self) -> None:
        """Cut off what somebody has written but did not live to publish.

        Left there, it would come back as events when the end of the log has to be searched for.
        """
        assert self._fd is not None
        if os.fstat(self._fd).st_size > self._known.position:
            self.files.truncate(self._fd, self._known.position)

    def _undo(self, position: int, error: OSError, *, harmless: bool) -> NoReturn:
        """Nothing of a write that failed may stay; unless it is `harmless`, its segment is not used again."""
        try:
            assert self._fd is not None
            self.files.truncate(self._fd, position)
        except OSError:
            harmless = False
        if not harmless:
            self._distrust(error)
        raise _refusal(error) from error

    def _distrust(self, error: OSError) -> None:
        """Have the active segment closed and another begun, and see what is left of it.

        After a failed sync nobody knows which of its pages are on disk: a second sync would say that all
        is well.
        """
        log.error("a write to a stream failed", stream=self.config.id, error=str(error))
        if self._sick or self._fd is None:
            return
        self._sick = True
        with contextlib.suppress(OSError):
            if hasattr(os, "posix_fadvise"):  # so that it is read from the disk, not from memory
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
            tail = self._known
            if damaged := count_damaged(self._fd, tail.base, tail.position, tail.next):
                self.count(damaged=damaged)
                log.error("events are damaged", stream=self.config.id, segment=tail.base, events=damaged)

    def _publish(self, tail: Tail) -> None:
        self._tail_file.publish(tail)
        self._known = tail

    def _now(self) -> int:
        now = clock.now_us()
        return self._last_us if 0 < self._last_us - now < BACKWARDS_US else now

    # The lock, and catching up with other writers

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer, and know where the log ends."""
        with self._mutex:
            if self._held == 0:
                self._take_lock()
            self._held += 1
            try:
                if self._held == 1:
                    self._catch_up()
                yield
            finally:
                self._held -= 1
                if self._held == 0:
                    self._lock.release()

    def _take_lock(self) -> None:
        """Whether the directory can be changed is seen when it is opened, and again when it matters."""
        try:
            if not self._tail_file.writable:
                self._tail_file.open()
            if not self._tail_file.writable:
                raise WriteFailed("the directory of the stream is read-only")
            self._lock.take()
        except OSError as error:
            raise _refusal(error) from error

    def _catch_up(self) -> None:
        """Learn what other processes have appended, and take back what one left behind half done."""
        tail = self._tail_file.read()
        if self._fd is not None and os.fstat(self._fd).st_nlink == 0:
            self._let_go()  # it was removed, and may have been made again in another directory
        try:
            if tail is None or not tail.exact:
                self._recover(tail)
            elif tail != self._known or self._fd is None:
                try:
                    self._adopt(tail)
                except FileNotFoundError:
                    self._recover(tail)
            if not self._tidy:
                self._clean()
        except OSError as error:
            raise _refusal(error) from error

    def _clean(self) -> None:
        """Remove what others who died have left behind."""
        self._tidy = True
        with contextlib.suppress(OSError):
            for path in leftovers(self.directories()):
                self.files.remove(path)

    def _adopt(self, tail: Tail) -> None:
        before = self._known
        if self._fd is not None and tail.base == self._base and tail.position >= before.position:
            follow(self._fd, before.position, tail.position, before.next, tail.next, self._producers)
        else:
            segments = list_segments(self.directories())
            path = segments[tail.base] if tail.base in segments else segment_path(self.directory, tail.base)
            fd = self.files.open(path)
            try:
                if os.fstat(fd).st_size < tail.position:  # not the file that the tail speaks of
                    raise FileNotFoundError(path)
                known = [(base, path) for base, path in segments.items() if base <= tail.base]
                producers = load_producers(known, tail.next, tail.position)
            except BaseException:
                os.close(fd)
                raise
            self._switch(fd, tail.base, path)
            self._producers, self._sick = producers, False
        self._known = tail
        if not self._began_us and (index := self.reader.index(tail.base, tail)):
            self._began_us = index.first_us

    def _recover(self, hint: Tail | None) -> None:
        """Find out from the segments how the log ends."""
        self._let_go()
        found = self._survey(hint)
        tail = found.tail
        if not found.segments:
            self._begin(tail.next, first=tail.first, producers=Producers())
            return
        producers = load_producers(found.segments, found.end, tail.position)
        base, path = found.segments[-1]
        self.files.step("recovery")
        if tail.position:
            fd = self.files.open(path)
            self._switch(fd, base, path)
            self._known, self._producers, self._sick = replace(tail, next=found.end), producers, False
            self._trim()
            if not found.damaged and tail.next == found.end:
                self._publish(self._known)
                log.info("stream recovered", stream=self.config.id, next=tail.next)
                return
            self._seal()  # so that what is lost is not searched for, and counted, again
        self._begin(tail.next, first=tail.first, producers=producers)
        if found.damaged:
            self.count(damaged=found.damaged)
            log.warning("events were lost", stream=self.config.id, segment=base, events=found.damaged)

    def _survey(self, hint: Tail | None) -> Survey:
        """What is left. Unless the tail is exact, others may remember a higher offset."""
        exact = hint is not None and hint.exact
        if exact:
            return survey(self.directories(), hint, 0)
        # As long as there is something in memory, it was not lost.
        in_memory = self.config.memory is not None and list_segments([self.config.memory])
        return survey(self.directories(), hint, highest(self.cursors()), 0 if in_memory else self._floor())

    def _let_go(self) -> None:
        """Forget the active segment."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._base = None, -1

    def _switch(self, fd: int, base: int, path: Path) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._base, self._path, self._began_us = fd, base, path, 0
        self._forget_listing()

    def _forget_listing(self) -> None:
        self._closed = None
        self.reader.forget()

    def move_first(self, first: int) -> None:
        """Let nobody read below an offset any more: what is there is about to be removed."""
        self._publish(replace(self._known, first=first))

    # Segments

    def must_roll(self, size: int, events: int) -> bool:
        """Whether the active segment is closed before so much more is written."""
        tail, limits = self._known, self.retention
        if self._sick or self._path.parent != limits.place(size, events):
            return True
        if tail.next == tail.base:
            return False
        most = limits.segment_events(self._path.parent)
        return (
            tail.position + size > limits.segment_bytes(self._path.parent)
            or (most is not None and tail.next - tail.base >= most)
            or not -BACKWARDS_US < clock.now_us() - self._began_us < self.spec.wal.segment_ms * 1000
        )

    def _roll(self, size: int = 0, events: int = 0) -> None:
        """Close the active segment and begin another. An empty one is not closed but replaced."""
        before, path = self._known, self._path
        if before.next > self._base:
            self._seal()
        try:
            place = self.retention.place(size, events)
            self._begin(before.next, first=before.first, producers=self._producers, place=place)
        except (Full, WriteFailed):
            if self._fd is not None:  # it goes on with the one before
                self._publish(before)
            raise
        if before.next == before.base and path != self._path:
            self.files.remove(path)
        self.retention.expire()

    def _seal(self) -> None:
        assert self._fd is not None
        path, tail = self._path, self._known
        try:
            self._trim()
            if path.parent != self.config.memory:
                self.files.step("seal")
                self.files.sync(self._fd)
        except OSError as error:
            self._distrust(error)
        self._dirty_since = None
        self._write_index(path, tail.base, tail.position, tail.next)

    def _write_index(self, path: Path, base: int, end: int, limit: int) -> None:
        """Write the index of a segment. Without it everything works, so that it may fail."""
        self.files.step("index")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = build_index(fd, base, end, limit).encode()
            finally:
                os.close(fd)
            self.files.replace(index_path(path), data, durable=path.parent != self.config.memory)
        except OSError as error:
            log.warning("an index was not written", stream=self.config.id, segment=base, error=str(error))

    def _index_closed(self) -> None:
        """Write the indexes that a crash has kept from being written, or that are damaged."""
        for segment in self.closed():
            if segment.base not in self._indexed and load_index(segment.path, segment.base) is None:
                self._write_index(segment.path, segment.base, segment.bytes, segment.next)
            self._indexed.add(segment.base)

    def _begin(self, base: int, first: int, producers: Producers, place: Path | None = None) -> None:
        """Begin a segment. It is published before it is made.

        So nobody appends to the segment before it any more, and whoever comes after a crash in between
        sees that this one is not whole, and recovers.
        """
        directory = place or self.retention.place(0, 0)
        path, durable = segment_path(directory, base), directory != self.config.memory
        frame = Frame(base, self._now(), Body(b"", 0, 0), producers.state(), control=True)
        data = b"".join(frame.encode())
        tail = Tail(min(first, base), base, base, len(data))
        self.files.step("publish")
        self._tail_file.publish(tail)
        self.files.step("roll")
        fd = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if self.config.transient:
                self._reserve(base)
            fd = self.files.create(path)
            self.files.write(fd, data, 0)
            if durable:
                self.files.sync(fd)
                self.files.step("directory sync")
                self.files.sync_directory(directory)
        except OSError as error:
            self._give_up(path, fd)
            raise _refusal(error) from error
        self._switch(fd, base, path)
        self._known, self._producers, self._sick = tail, producers, False

    def _give_up(self, path: Path, fd: int) -> None:
        """Take back a segment that could not be made."""
        if fd >= 0:
            os.close(fd)
        if path == self._path:
            self._let_go()
        try:
            self.files.remove(path)
        except OSError:
            self._let_go()

    # What a transient stream leaves behind

    def _floor(self) -> int:
        try:
            return int((self.directory / FLOOR).read_text())
        except (OSError, ValueError):
            return 0

    def _bring_to_disk(self) -> None:
        """Move what a stream has elsewhere from when it was transient, and would lose with a restart."""
        for segment in self.closed():
            if segment.path.parent != self.directory:
                target = segment_path(self.directory, segment.base)
                self.files.replace(target, segment.path.read_bytes(), durable=True)
                self.files.remove(segment.path)
                self.files.remove(index_path(segment.path))
                self._indexed.discard(segment.base)
                self._forget_listing()
        if (floor := self.directory / FLOOR).exists():  # the segments say it now
            self.files.remove(floor)
            self.files.sync_directory(self.directory)

    def _reserve(self, next: int) -> None:
        """Offsets of a transient stream are not on disk, so a bound of them is."""
        if next + RESERVED // 2 > self._reserved:
            reserved = next + RESERVED
            self.files.replace(self.directory / FLOOR, str(reserved).encode(), durable=True)
            self._reserved = reserved

    def refresh(self) -> None:
        if self._mutex.acquire(blocking=False):  # else whoever writes does it
            try:
                with contextlib.suppress(OSError, ValueError):  # a write would tell it
                    self._reconfigure()
            finally:
                self._mutex.release()

    def _reconfigure(self) -> None:
        version = config_version(self.directory)
        if version != self._config_version:
            self.config, self._config_version = read_config(self.directory), version
            self.spec = self.config.spec
            self._reserved = 0  # somebody may have removed it while the stream was durable
            self._forget_listing()


def _refusal(error: OSError) -> Full | WriteFailed:
    """What a fault of the disk means to who appends."""
    return Full("disk_full") if error.errno in NO_ROOM else WriteFailed(f"the disk refused: {error.strerror}")
