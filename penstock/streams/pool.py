"""The open logs of a process: one instance for each stream."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from penstock.streams.config import read_config

if TYPE_CHECKING:
    from penstock.streams.log import Log
    from penstock.streams.storage import Storage


KEPT = 1_000
"""The number of logs to retain without references; their files may be closed (see `open_files.py`)."""

LOOK_S = 1.0
"""Seconds between two searches for logs that another process has deleted."""


def open_storage(directory: Path) -> Storage:
    """Open the storage of a stream's directory, of the kind named in its settings."""
    config = read_config(directory)
    storage = config.spec.storage
    if config.server is not None:
        from penstock.streams.remote.storage import RemoteStorage

        return RemoteStorage(directory)
    if storage == "sqlite":
        from penstock.streams.sqlite.storage import SqliteStorage

        return SqliteStorage(directory)
    if storage == "kafka":
        from penstock.streams.kafka.storage import KafkaStorage

        return KafkaStorage(directory)
    from penstock.streams.local.storage import LocalStorage

    return LocalStorage(directory)


class Pool:
    """Opens logs on first use. There is one instance of a log while anything refers to it."""

    def __init__(self, kept: int = KEPT) -> None:
        self._most = kept
        self._logs: WeakValueDictionary[Path, Log] = WeakValueDictionary()
        self._kept: OrderedDict[Path, Log] = OrderedDict()
        """The most recently used logs, the last one at the end, and all logs that need `close`."""
        self._looked = 0.0
        self._mutex = threading.Lock()
        self._opening: dict[Path, threading.Lock] = {}

    def log(self, directory: Path) -> Log:
        """The log in a directory."""
        with self._mutex:
            if (found := self._logs.get(directory)) is not None:
                self._keep(directory, found)
                return found
            opening = self._opening.setdefault(directory, threading.Lock())
        with opening:  # a lock per log: opening a log in Kafka waits for the brokers
            return self._opened(directory)

    def _opened(self, directory: Path) -> Log:
        from penstock.streams.log import Log

        with self._mutex:
            if (found := self._logs.get(directory)) is not None:
                return found
            self._drop_deleted()
        made = Log(open_storage(directory))
        with self._mutex:
            self._opening.pop(directory, None)
            self._logs[directory] = made
            self._keep(directory, made)
        return made

    def _keep(self, directory: Path, log: Log) -> None:
        """Retain a log that was just used, and release the least recently used one above the limit."""
        self._kept[directory] = log
        self._kept.move_to_end(directory)
        if len(self._kept) > self._most:
            oldest = next(iter(self._kept))
            if self._kept[oldest].rests:
                del self._kept[oldest]
            else:
                self._kept.move_to_end(oldest)

    def _drop_deleted(self) -> None:
        """Close streams that were deleted by another process."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        for directory in [known for known in self._kept if not known.is_dir()]:
            self._kept.pop(directory).close()
            self._logs.pop(directory, None)

    def full(self) -> dict[Path, str]:
        """The streams without room for this process's appends, with the reasons."""
        with self._mutex:
            logs = dict(self._logs)
        found = {directory: log.fill["full"] for directory, log in logs.items()}
        return {directory: why for directory, why in found.items() if why is not None}

    def drop(self, directory: Path) -> None:
        """Close a log whose directory is about to be deleted."""
        with self._mutex:
            self._kept.pop(directory, None)
            found = self._logs.pop(directory, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all logs."""
        with self._mutex:
            logs = list(self._logs.values())
            self._logs.clear()
            self._kept.clear()
        for log in logs:
            log.close()
