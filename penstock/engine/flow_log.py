"""The log of a flow: what it has to say of itself, kept in its directory so that it outlives its worker.

Each line goes to the log of the process too. To log never fails a flow and never holds it up: lines are not
synced, there are only so many a second, and a disk that is full loses them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog

from penstock.connectors.base import Site
from penstock.engine.log_lines import FILE, OLDER, Level, LogLine

log = structlog.get_logger()

MOST_BYTES = 1024 * 1024
"""Then another file is begun. One older one is kept."""

MOST_A_SECOND = 50
"""Lines of one level: a script that floods the log must not hide what fails."""

LONGEST = 2000
"""Longer texts are cut."""


class FlowLog:
    """Writes the log of one flow. Any thread may use it."""

    def __init__(self, flow: str, directory: Path | None) -> None:
        self._flow, self._directory = flow, directory
        self._lock = threading.Lock()
        self._second = 0.0
        self._lines: Counter[Level] = Counter()
        self._left_out = 0

    def begin(self) -> None:
        """Make the directory. Only then: what comes late must not bring back what was deleted."""
        if self._directory is not None:
            with contextlib.suppress(OSError):
                self._directory.mkdir(parents=True, exist_ok=True)

    def info(self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any) -> None:
        """Something that is as it should be."""
        self._say("info", message, step, sink, fields)

    def warning(
        self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any
    ) -> None:
        """Something that a person may have to look at."""
        self._say("warning", message, step, sink, fields)

    def error(self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any) -> None:
        """Something that has failed."""
        self._say("error", message, step, sink, fields)

    def said(self, step: str, text: str) -> None:
        """A line that a step has printed."""
        if self._directory is not None and self._admitted("info"):
            log.info("said", flow=self._flow, step=step, message=text)
            self._write(_line("info", text, step, None, {}))

    def _say(
        self, level: Level, message: str, step: str | None, sink: str | None, fields: dict[str, Any]
    ) -> None:
        if self._directory is not None and self._admitted(level):
            where = {name: id for name, id in (("step", step), ("sink", sink)) if id is not None}
            getattr(log, level)(message, flow=self._flow, **where, **fields)
            self._write(_line(level, message, step, sink, fields))

    def _admitted(self, level: Level) -> bool:
        """Whether there is room for a line in this second."""
        with self._lock:
            now = time.monotonic()
            if now - self._second >= 1.0:
                self._second, self._lines = now, Counter()
            self._lines[level] += 1
            if self._lines[level] <= MOST_A_SECOND:
                return True
            if not self._left_out:
                timer = threading.Timer(1.0, self._tell)
                timer.daemon = True
                timer.start()
            self._left_out += 1
            return False

    def _tell(self) -> None:
        with self._lock:
            count, self._left_out = self._left_out, 0
        message = f"{count} lines were left out: there are at most {MOST_A_SECOND} a second"
        log.warning(message, flow=self._flow)
        self._write(_line("warning", message, None, None, {"left_out": count}))

    def _write(self, line: LogLine) -> None:
        assert self._directory is not None
        path = self._directory / FILE
        with contextlib.suppress(OSError), self._lock:
            # Opened for each line: another worker may have the flow by now, and have begun another file.
            with path.open("ab") as file:
                file.write(line.model_dump_json().encode() + b"\n")
                size = file.tell()
            if size >= MOST_BYTES:
                os.replace(path, self._directory / OLDER)


NO_LOG = FlowLog("", None)
"""Of a flow that says nothing."""


def flow_log(site: Site) -> FlowLog:
    """The log of the flow that runs at a site."""
    return _opened(site.flow, site.state)


@lru_cache(maxsize=10_000)
def _opened(flow: str, directory: Path | None) -> FlowLog:
    """One for each flow of this process, so that its lines are counted together."""
    return FlowLog(flow, directory)


def _line(level: Level, message: str, step: str | None, sink: str | None, fields: dict[str, Any]) -> LogLine:
    plain = {name: _plain(value) for name, value in fields.items() if value is not None}
    return LogLine(
        at=datetime.now(UTC), level=level, message=_short(message), step=step, sink=sink, fields=plain
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else _short(str(value))


def _short(text: str) -> str:
    text = text.encode(errors="replace").decode()  # half a character has no place in a file
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
