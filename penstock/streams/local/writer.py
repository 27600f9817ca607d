"""Appending to the segments of a log, by one process at a time.

A writer takes the stream's lock, catches up with other writers, writes after the published end, and publishes
the new end. Only the tail is authoritative: if a process dies between writing and publishing, the next writer
truncates the unpublished bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import structlog

from penstock.streams import clock
from penstock.streams.config import StreamConfig
from penstock.streams.frames import Body, Frame
from penstock.streams.local.floor import Floor
from penstock.streams.local.framing import frame_appends, joined
from penstock.streams.local.lock import StreamLock
from penstock.streams.local.recovery import Survey, count_damaged, follow, leftovers, load_producers, survey
from penstock.streams.local.retention import Closed
from penstock.streams.local.segments import build_index, index_path, list_segments, load_index, segment_path
from penstock.streams.local.tail import Tail, TailFile
from penstock.streams.producers import Producers, highest
from penstock.streams.storage import FLUSH_S, Append, Appended, Full, Progress, Refusal, WriteFailed

if TYPE_CHECKING:
    from penstock.streams.local.storage import LocalStorage

log = structlog.get_logger()

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Writer:
    """The only code that changes the segments of a stream."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage
        self.directory, self.files = storage.directory, storage.files
        self.tail_file = TailFile(self.directory / "tail", self.files, storage.opened)
        self.mutex = threading.RLock()
        self._lock = StreamLock(self.directory / "lock", self.files)
        self._held = 0
        self.known = Tail(0, 0, -1, 0)
        """The end of the log when the lock was last held."""
        self._fd: int | None = None
        self._path = self.directory
        self._base = -1
        self._began_us = 0  # when the active segment got its first event
        self._indexed: set[int] = set()
        self._producers = Producers()
        self._last_us = 0
        self._dirty_since: float | None = None
        self._sick = self._tidy = False
        self.floor = Floor(self.directory, self.files)

    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        with self.locked():
            self._storage.reconfigure()
            self._storage.require_here()
            producers = self._producers.copy() if any(a.producer for a in appends) else self._producers
            frames, results = frame_appends(
                appends, self.known.next, clock.stamp_us(self._last_us), producers
            )
            if frames:
                parts = [part for frame in frames for part in frame.encode()]
                size = sum(len(part) for part in parts)
                events = sum(frame.body.count for frame in frames)
                self._storage.retention.make_room(size, events)
                if self.must_roll(size, events):
                    self._roll(size, events)
                self._put(parts, frames[-1].base + frames[-1].body.count)
                self._producers = producers
                self._last_us = frames[-1].time_us
                self._began_us = self._began_us or self._last_us
            return results

    def progress(self, producer: str) -> Progress:
        """The progress of a producer, by the appends of all processes."""
        with self.locked():
            self._storage.require_here()
            return self._producers.progress(producer)

    def producers(self) -> Producers:
        """The windows of all producers; the caller holds the lock."""
        return self._producers.copy()

    def maintain(self) -> None:
        with self.locked():
            self._storage.reconfigure()
            self._storage.require_here()
            if self.must_roll(0, 0):
                self._roll()
            self._storage.retention.expire()
            if not self.config.transient:
                self._bring_to_disk()
            self._index_closed()
            self.flush()

    def settle(self, *, close: bool) -> None:
        """Truncate the active segment at the published end; with `close`, close it."""
        with self.locked():
            self._trim()
            if close:
                self._roll()

    def flush(self) -> None:
        """Sync events that were acknowledged without a sync."""
        with self.mutex:
            if self._dirty_since is not None and self._fd is not None:
                self._dirty_since = None
                if self.active_in(self.config.memory):
                    return
                try:
                    self.files.sync(self._fd)
                except OSError as error:
                    self._distrust(error)

    def rest(self) -> bool:
        """Close all files until their next use; false while the lock is held, or after a disk error."""
        self.flush()
        if self._held or self._sick:
            return False
        self._let_go()
        self._lock.close()
        self.tail_file.rest()
        return True

    @property
    def open_files(self) -> int:
        """The number of descriptors in use."""
        return self.tail_file.is_open + self._lock.is_open + (self._fd is not None)

    def close(self) -> None:
        """Close all files for good."""
        with self.mutex:
            self.flush()
            self._let_go()
            self._lock.close()
            self.tail_file.close()

    @property
    def config(self) -> StreamConfig:
        """The current settings."""
        return self._storage.config

    # The active segment

    def active(self) -> Closed:
        """The active segment, as if it were closed."""
        tail = self.known
        return Closed(tail.base, tail.next, self._path, tail.position)

    def active_in(self, directory: Path | None) -> bool:
        """Whether the active segment lies in a directory."""
        return self._path.parent == directory

    def _put(self, parts: list[bytes | pa.Buffer], stop: int) -> None:
        """Append frames to the active segment, and publish them."""
        assert self._fd is not None
        position = end = self.known.position
        syncing = False
        try:
            self.files.step("append")
            self._trim()
            if self.config.transient:
                self.floor.reserve(stop)
            for data in joined(parts):
                self.files.write(self._fd, data, end)
                end += len(data)
            self.files.step("written")
            self._dirty_since = self._dirty_since or time.monotonic()
            if self._storage.spec.wal.sync or time.monotonic() - self._dirty_since >= FLUSH_S:
                syncing = True
                if not self.active_in(self.config.memory):
                    self.files.sync(self._fd)
                self._dirty_since = None
        except OSError as error:
            self._undo(position, error, harmless=error.errno in NO_ROOM and not syncing)
        self.files.step("publish")
        self._publish(replace(self.known, next=stop, position=end))

    def _trim(self) -> None:
        """Truncate bytes that a process wrote and did not publish before it died.

        Otherwise a later recovery would treat them as events.
        """
        assert self._fd is not None
        if os.fstat(self._fd).st_size > self.known.position:
            self.files.truncate(self._fd, self.known.position)

    def _undo(self, position: int, error: OSError, *, harmless: bool) -> NoReturn:
        """Undo a failed write; unless the failure is `harmless`, the segment is not used again."""
        try:
            assert self._fd is not None
            self.files.truncate(self._fd, position)
        except OSError:
            harmless = False
        if not harmless:
            self._distrust(error)
        raise _refusal(error) from error

    def _distrust(self, error: OSError) -> None:
        """Stop using the active segment after a disk error, and count its damaged events.

        After a failed sync it is unknown which pages are on disk: a second sync would report success.
        """
        log.error("a write to a stream failed", stream=self.config.id, error=str(error))
        if self._sick or self._fd is None:
            return
        self._sick = True
        with contextlib.suppress(OSError):
            if hasattr(os, "posix_fadvise"):  # so that the segment is read from disk, not from memory
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
            tail = self.known
            if damaged := count_damaged(self._fd, tail.base, tail.position, tail.next):
                self._storage.count(damaged=damaged)
                log.error("events are damaged", stream=self.config.id, segment=tail.base, events=damaged)

    def _publish(self, tail: Tail) -> None:
        self.tail_file.publish(tail)
        self.known = tail

    def move_first(self, first: int) -> None:
        """Move the first readable offset, before segments below it are removed."""
        self._publish(replace(self.known, first=first))

    # The lock, and catching up with other writers

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, with the end of the log known."""
        with self.mutex:
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
        """Take the lock. If the directory was not writable when it was opened, this is checked again."""
        try:
            if not self.tail_file.writable:
                self.tail_file.open()
            if not self.tail_file.writable:
                raise WriteFailed("the directory of the stream is read-only")
            self._lock.take()
        except OSError as error:
            raise _refusal(error) from error

    def _catch_up(self) -> None:
        """Catch up with appends of other processes, and undo an unfinished append."""
        tail = self.tail_file.read()
        if self._fd is not None and os.fstat(self._fd).st_nlink == 0:
            self._let_go()  # removed, and perhaps created again in another directory
        try:
            if tail is None or not tail.exact:
                self._recover(tail)
            elif tail != self.known or self._fd is None:
                try:
                    self._adopt(tail)
                except FileNotFoundError:
                    self._recover(tail)
            if not self._tidy:
                self._clean()
        except OSError as error:
            raise _refusal(error) from error

    def _clean(self) -> None:
        """Remove leftover files of processes that have died."""
        self._tidy = True
        with contextlib.suppress(OSError):
            for path in leftovers(self._storage.directories()):
                self.files.remove(path)

    def _adopt(self, tail: Tail) -> None:
        before = self.known
        if self._fd is not None and tail.base == self._base and tail.position >= before.position:
            follow(self._fd, before.position, tail.position, before.next, tail.next, self._producers)
        else:
            segments = list_segments(self._storage.directories())
            path = segments[tail.base] if tail.base in segments else segment_path(self.directory, tail.base)
            fd = self.files.open(path)
            try:
                if os.fstat(fd).st_size < tail.position:  # not the file of this tail
                    raise FileNotFoundError(path)
                known = [(base, path) for base, path in segments.items() if base <= tail.base]
                producers = load_producers(known, tail.next, tail.position)
            except BaseException:
                os.close(fd)
                raise
            self._switch(fd, tail.base, path)
            self._producers, self._sick = producers, False
        self.known = tail
        if not self._began_us and (index := self._storage.reader.index(tail.base, tail)):
            self._began_us = index.first_us

    def _recover(self, hint: Tail | None) -> None:
        """Find the end of the log in its segments."""
        self._let_go()
        found = self.survey(hint)
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
            self.known, self._producers, self._sick = replace(tail, next=found.end), producers, False
            self._trim()
            if not found.damaged and tail.next == found.end:
                self._publish(self.known)
                log.info("stream recovered", stream=self.config.id, next=tail.next)
                return
            self._seal()  # so that losses are not searched for and counted again
        self._begin(tail.next, first=tail.first, producers=producers)
        if found.damaged:
            self._storage.count(damaged=found.damaged)
            log.warning("events were lost", stream=self.config.id, segment=base, events=found.damaged)

    def survey(self, hint: Tail | None) -> Survey:
        """Survey the log. If the tail is not exact, a cursor may have a higher offset."""
        exact = hint is not None and hint.exact
        if exact:
            return survey(self._storage.directories(), hint, 0)
        # If there are segments in memory, the events of the transient stream were not lost.
        in_memory = self.config.memory is not None and list_segments([self.config.memory])
        return survey(
            self._storage.directories(),
            hint,
            highest(self._storage.cursors()),
            0 if in_memory else self.floor.read(),
        )

    def _let_go(self) -> None:
        """Close the active segment's file."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._base = None, -1

    def _switch(self, fd: int, base: int, path: Path) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._base, self._path, self._began_us = fd, base, path, 0
        self._storage.forget_listing()

    # Closing a segment, and beginning another

    def must_roll(self, size: int, events: int) -> bool:
        """Whether the active segment has to be closed before `size` more bytes are written."""
        tail, limits = self.known, self._storage.retention
        if self._sick or self._path.parent != limits.place(size, events):
            return True
        if tail.next == tail.base:
            return False
        most, oldest_us = limits.segment_events(self._path.parent), self._storage.spec.wal.segment_ms * 1000
        return (
            tail.position + size > limits.segment_bytes(self._path.parent)
            or (most is not None and tail.next - tail.base >= most)
            or not -clock.BACKWARDS_US < clock.now_us() - self._began_us < oldest_us
        )

    def _roll(self, size: int = 0, events: int = 0) -> None:
        """Close the active segment and begin another. An empty segment is replaced instead of closed."""
        before, path = self.known, self._path
        if before.next > self._base:
            self._seal()
        try:
            place = self._storage.retention.place(size, events)
            self._begin(before.next, first=before.first, producers=self._producers, place=place)
        except (Full, WriteFailed):
            if self._fd is not None:  # the previous one stays active
                self._publish(before)
            raise
        if before.next == before.base and path != self._path:
            self.files.remove(path)
        self._storage.retention.expire()

    def _seal(self) -> None:
        assert self._fd is not None
        path, tail = self._path, self.known
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
        """Write the index of a segment. A failure is only logged, since the index is optional."""
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
        """Write indexes that are missing after a crash, or damaged."""
        for segment in self._storage.closed():
            if segment.base not in self._indexed and load_index(segment.path, segment.base) is None:
                self._write_index(segment.path, segment.base, segment.bytes, segment.next)
            self._indexed.add(segment.base)

    def _begin(self, base: int, first: int, producers: Producers, place: Path | None = None) -> None:
        """Begin a segment. It is published before its file is created.

        So no process appends to the previous segment any more, and after a crash in between, the next writer
        detects that this segment is incomplete, and recovers.
        """
        directory = place or self._storage.retention.place(0, 0)
        path, durable = segment_path(directory, base), directory != self.config.memory
        frame = Frame(base, clock.stamp_us(self._last_us), Body(b"", 0, 0), producers.state(), control=True)
        data = b"".join(frame.encode())
        tail = Tail(min(first, base), base, base, len(data))
        self.files.step("publish")
        self.tail_file.publish(tail)
        self.files.step("roll")
        fd = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if self.config.transient:
                self.floor.reserve(base)
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
        self.known, self._producers, self._sick = tail, producers, False
        if not self.config.transient:
            with contextlib.suppress(OSError):  # the only effect is a gap in the offsets
                self.floor.remove()

    def _give_up(self, path: Path, fd: int) -> None:
        """Undo the failed creation of a segment."""
        if fd >= 0:
            os.close(fd)
        if path == self._path:
            self._let_go()
        try:
            self.files.remove(path)
        except OSError:
            self._let_go()

    def _bring_to_disk(self) -> None:
        """Move the in-memory segments of a formerly transient stream to disk."""
        for segment in self._storage.closed():
            if segment.path.parent != self.directory:
                target = segment_path(self.directory, segment.base)
                self.files.replace(target, segment.path.read_bytes(), durable=True)
                self.files.remove(segment.path)
                self.files.remove(index_path(segment.path))
                self._indexed.discard(segment.base)
                self._storage.forget_listing()


def _refusal(error: OSError) -> Full | WriteFailed:
    """The error for the caller of an append that failed with an OS error."""
    return Full("disk_full") if error.errno in NO_ROOM else WriteFailed(f"disk error: {error.strerror}")
