"""Deliveries of a drill, read from the ledgers of its pipelines while it runs."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.engine.delivery.sink_states import FILE

LOOK_S = 0.1


@dataclass(frozen=True)
class Seen:
    """The ledger of a pipeline at one time."""

    epoch: int = 0
    since: float = 0.0
    """When this epoch was first seen."""
    acked_at: float = 0.0
    """The last acknowledgement of a sink."""
    first_acked_at: float | None = None
    """The first acknowledgement that was seen under this epoch."""


class Watch:
    """Reads all ledgers ten times a second. Times are seconds since 1970."""

    def __init__(self, home: Path, pipelines: Iterable[str]) -> None:
        self._home = home
        self._seen = dict.fromkeys(pipelines, Seen())
        self.stepped_back: list[str] = []
        """Messages about epochs that wrote after a later epoch: each means two concurrent writers."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def seen(self, pipeline: str) -> Seen:
        """The newest state of a pipeline."""
        return self._seen[pipeline]

    def taken_over_at(self, pipeline: str, after: int) -> float | None:
        """When a pipeline delivered its first batch under an epoch later than `after`; None: not yet."""
        seen = self._seen[pipeline]
        return seen.first_acked_at if seen.epoch > after else None

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            for pipeline in self._seen:
                for ledger in (self._home / "flows" / pipeline).glob(f"*/{FILE}"):
                    self._look(pipeline, ledger)

    def _look(self, pipeline: str, ledger: Path) -> None:
        try:
            db = sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=1)
            try:
                (epoch,) = db.execute("PRAGMA user_version").fetchone()
                (acked,) = db.execute("SELECT max(last_ack_at) FROM sinks").fetchone()
            finally:
                db.close()
        except sqlite3.Error:  # the ledger is being created
            return
        self.note(pipeline, int(epoch), float(acked or 0.0), time.time())

    def note(self, pipeline: str, epoch: int, acked_at: float, now: float) -> None:
        """Record the state of a ledger."""
        seen = self._seen[pipeline]
        if epoch < seen.epoch:
            self.stepped_back.append(f"{pipeline}: epoch {epoch} wrote after epoch {seen.epoch}")
        elif epoch > seen.epoch:
            seen = Seen(epoch, now, acked_at)
        elif acked_at > seen.acked_at:
            first = seen.first_acked_at or acked_at
            seen = replace(seen, acked_at=acked_at, first_acked_at=first)
        self._seen[pipeline] = seen
