"""CPU and memory of a process and its children; a worker's include the JVM and Spark's Python processes."""

from __future__ import annotations

import time

import psutil

EVERY_S = 2.0
"""Minimum seconds between measurements: scanning all processes of the machine costs some milliseconds."""


class Vitals:
    """Measures this process. Used by one thread."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._process, self._every_s = psutil.Process(), every_s
        self._looked, self._used = 0.0, dict[tuple[int, float], float]()
        self._found: dict[str, float | int | None] = {"cpu_percent": None, "memory_bytes": None}

    def read(self) -> dict[str, float | int | None]:
        """`cpu_percent` of one core since the last measurement, None at the first, and `memory_bytes`."""
        now = time.monotonic()
        if now - self._looked < self._every_s:
            return self._found
        used: dict[tuple[int, float], float] = {}
        memory = 0
        for process in self._family():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    used[(process.pid, process.create_time())] = times.user + times.system
                    memory += process.memory_info().rss
            except psutil.Error:  # it has ended meanwhile
                continue
        # CPU time of a new child was used since the last measurement.
        spent = sum(seconds - self._used.get(who, 0.0) for who, seconds in used.items())
        cpu = round(100 * max(0.0, spent) / (now - self._looked), 1) if self._used else None
        self._looked, self._used = now, used
        self._found = {"cpu_percent": cpu, "memory_bytes": memory}
        return self._found

    def _family(self) -> list[psutil.Process]:
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.Error:
            return [self._process]
