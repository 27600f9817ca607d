"""The work mark of a flow: the current activity of its process, in a file that outlives the process.

A flow that kills its process, for example by exhausting the memory, cannot report that. The next process
reads the last mark, which also has the number of consecutive processes that died while working on this flow.
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from typing import Literal

from penstock.errors import Problem

FILE = "work"

Work = Literal["rests", "starts", "waits", "delivers"]
"""No run; a run that starts; a run between two batches; a run with a batch in progress."""

WORKER_DIED = "worker_died"
"""The code of the problem that `take_up` returns."""

PROCESS = uuid.uuid4().hex[:8]
"""The id of this process: it has survived the activity of any mark with the same id."""

_LETTERS: dict[str, Work] = {"r": "rests", "s": "starts", "w": "waits", "d": "delivers"}
_MOST = 99_999


class WorkMark:
    """The mark of one flow. A change costs one system call without a sync: only a power loss loses it."""

    def __init__(self, directory: Path, process: str = PROCESS) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._process = process
        self._lock = threading.Lock()
        self._file: int | None = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        found = os.pread(self._file, 15, 0).decode("ascii", "replace")
        self.work: Work = _LETTERS.get(found[:1], "rests")
        self._survived = found[7:15] == process
        self.deaths = int(found[1:6]) if found[1:6].isdigit() else 0
        """Consecutive processes that died while starting this flow, or delivering one of its batches."""

    def take_up(self) -> Problem | None:
        """Take over the mark of the last process; returns a problem if it died while working on the flow."""
        died_at = self.work
        died = died_at in ("starts", "delivers") and not self._survived
        self.deaths = min(self.deaths + died, _MOST)
        self.rest()
        if not died:
            return None
        when = "was processing a batch" if died_at == "delivers" else "was starting"
        times = "" if self.deaths == 1 else f", {self.deaths} times in a row"
        return Problem(
            code=WORKER_DIED,
            message=f"the worker died while this flow {when}{times}",
            hint="if memory ran out, set a smaller batch.max_events or a larger spark.driver.memory",
        )

    def start(self) -> None:
        """Record that a run starts."""
        self._write("starts")

    def answered(self) -> None:
        """Record that the run has started, unless a batch is already in progress."""
        if self.work == "starts":
            self._write("waits", only_from="starts")

    def delivering(self, begins: bool) -> None:
        """Record that a batch begins, or has been delivered."""
        self._write("delivers" if begins else "waits")

    def forgive(self) -> None:
        """Reset the number of deaths: the flow runs without killing its process, or will not be retried."""
        if self.deaths:
            self.deaths = 0
            self._write(self.work)

    def rest(self) -> None:
        """Record that there is no run."""
        self._write("rests")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _write(self, work: Work, only_from: Work | None = None) -> None:
        with self._lock:
            if self._file is not None and only_from in (None, self.work):
                self.work = work
                os.pwrite(self._file, f"{work[0]}{self.deaths:05d} {self._process}\n".encode(), 0)
