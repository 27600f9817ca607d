"""The log of a flow, stored in the flow's directory so that it outlives its worker.

Each line is also written to the log of the process. Logging never fails or blocks a flow: lines are not
synced, their number per second is limited, and a full disk loses them.
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

from penstock.engine.runtime.flow_log_reader import FILE, OLDER, Level, LogLine
from penstock.frames.site import Site
from penstock.plurals import plural
from penstock.redaction import redacted

log = structlog.get_logger()

MOST_BYTES = 1024 * 1024
"""The size in bytes at which the file is rotated. One older file is retained."""

MOST_A_SECOND = 50
"""The maximum number of lines per level: a script that floods the log must not hide failures."""

LONGEST = 2000
"""The maximum length of a text; longer texts are truncated."""


class FlowLog:
    """Writes the log of one flow. Any thread may use it."""

    def __init__(self, flow: str, directory: Path | None) -> None:
        self._flow, self._directory = flow, directory
        self._lock = threading.Lock()
        self._second = 0.0
        self._lines: Counter[Level] = Counter()
        self._left_out = 0

    def begin(self) -> None:
        """Create the directory. Only here: a late line must not recreate the directory of a deleted flow."""
        if self._directory is not None:
            with contextlib.suppress(OSError):
                self._directory.mkdir(parents=True, exist_ok=True)

    def info(self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any) -> None:
        """Log a normal event."""
        self._say("info", message, step, sink, fields)

    def warning(
        self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any
    ) -> None:
        """Log something that may need attention."""
        self._say("warning", message, step, sink, fields)

    def error(self, message: str, *, step: str | None = None, sink: str | None = None, **fields: Any) -> None:
        """Log a failure."""
        self._say("error", message, step, sink, fields)

    def said(self, step: str, text: str) -> None:
        """Log a line that a step has printed."""
        if self._directory is not None and self._admitted("info"):
            log.info("said", flow=self._flow, step=step, message=text)
            self._write(_line("info", text, step, None, {}))

    def _say(
        self, level: Level, message: str, step: str | None, sink: str | None, fields: dict[str, Any]
    ) -> None:
        if self._directory is not None and self._admitted(level):
            where = {name: part for name, part in (("step", step), ("sink", sink)) if part is not None}
            getattr(log, level)(message, flow=self._flow, **where, **fields)
            self._write(_line(level, message, step, sink, fields))

    def _admitted(self, level: Level) -> bool:
        """Whether another line is allowed in this second."""
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
        message = f"{plural(count, 'line')} omitted: at most {MOST_A_SECOND} lines per second are logged"
        log.warning(message, flow=self._flow)
        self._write(_line("warning", message, None, None, {"left_out": count}))

    def _write(self, line: LogLine) -> None:
        assert self._directory is not None
        path = self._directory / FILE
        with contextlib.suppress(OSError), self._lock:
            # Opened for each line: another worker may have taken over the flow, and have rotated the file.
            with path.open("ab") as file:
                file.write(redacted(line.model_dump_json()).encode() + b"\n")
                size = file.tell()
            if size >= MOST_BYTES:
                os.replace(path, self._directory / OLDER)


NO_LOG = FlowLog("", None)
"""A log that discards its lines."""


def flow_log(site: Site) -> FlowLog:
    """The log of the flow that runs at a site."""
    return _opened(site.flow, site.state)


@lru_cache(maxsize=10_000)
def _opened(flow: str, directory: Path | None) -> FlowLog:
    """The log of a flow: one instance per flow of this process, so that its lines are counted together."""
    return FlowLog(flow, directory)


def _line(level: Level, message: str, step: str | None, sink: str | None, fields: dict[str, Any]) -> LogLine:
    plain = {name: _plain(value) for name, value in fields.items() if value is not None}
    return LogLine(
        at=datetime.now(UTC), level=level, message=_short(message), step=step, sink=sink, fields=plain
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else _short(str(value))


def _short(text: str) -> str:
    text = text.encode(errors="replace").decode()  # half of a surrogate pair cannot be written
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
