"""A cache of recently read chunks, decoded: many clients follow the same stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from penstock.control.streams.doors import Door
from penstock.streams.log import Chunk

MOST_BYTES = 32 * 1024 * 1024
"""Maximum total size of the cached chunks in bytes."""


class RecentChunks:
    """Caches chunks by stream. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._size = most_bytes, 0
        self._kept: dict[tuple[Path, int], Chunk] = {}
        self._mutex = threading.Lock()

    def read(self, door: Door, start: int) -> Iterator[Chunk]:
        """The chunks of a stream from an offset on; the first may come from the cache."""
        if (found := self._find(door.directory, start)) is not None:
            yield found
            start = found.next
        for chunk in door.log.read(start):
            self._keep(door.directory, chunk)
            yield chunk

    def _find(self, directory: Path, start: int) -> Chunk | None:
        with self._mutex:
            for (stream, base), chunk in reversed(self._kept.items()):
                if stream == directory and base <= start < chunk.next and chunk.batch is not None:
                    rest = chunk.batch.slice(start - base)
                    return Chunk(start, chunk.next, chunk.time_us, rest)
        return None

    def _keep(self, directory: Path, chunk: Chunk) -> None:
        if chunk.batch is None or chunk.batch.nbytes > self._most // 4:
            return
        with self._mutex:
            self._drop((directory, chunk.base))
            self._kept[directory, chunk.base] = chunk
            self._size += chunk.batch.nbytes
            while self._size > self._most:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[Path, int]) -> None:
        chunk = self._kept.pop(key, None)
        if chunk is not None and chunk.batch is not None:
            self._size -= chunk.batch.nbytes
