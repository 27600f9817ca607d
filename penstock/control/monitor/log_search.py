"""Search in the logs of all flows."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from penstock.control.documents.service import Service
from penstock.control.graph.layout import key_of
from penstock.control.monitor.flow_logs import reader_of
from penstock.control.registry.records import Running
from penstock.engine.runtime.flow_log_reader import Level, LogLine
from penstock.errors import NotFound, Unavailable

LOOK_S = 3.0
"""Seconds that a search may take; then the least recently changed logs are skipped."""


@dataclass(frozen=True)
class LogQuery:
    """The filters of a search in logs."""

    text: str = ""
    level: Level = "info"
    flow: str | None = None
    """The key of a flow, such as `Pipeline/orders`."""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class FoundLine:
    """A line, and the flow that it belongs to."""

    kind: str
    id: str
    name: str
    line: LogLine


@dataclass(frozen=True)
class FoundLines:
    """The newest matching lines, newest first."""

    lines: list[FoundLine]
    complete: bool
    """Whether the logs of all flows were searched."""


def search_logs(service: Service, query: LogQuery, limit: int) -> FoundLines:
    """Search the logs of all flows, most recently changed first."""
    flows = service.registry.running()
    wanted = [each for each in flows if query.flow in (None, key_of(each.kind, each.flow.id))]
    wanted.sort(key=lambda each: each.flow.updated_at, reverse=True)
    until, found, complete = time.monotonic() + LOOK_S, list[FoundLine](), True
    for each in wanted:
        if time.monotonic() > until:
            complete = False
            break
        found = heapq.nlargest(limit, [*found, *_matching(service, each, query)], key=lambda hit: hit.line.at)
    return FoundLines(found, complete)


def _matching(service: Service, each: Running, query: LogQuery) -> Iterator[FoundLine]:
    try:
        lines = reader_of(service, each.kind, each.flow.id, query.level).look()
    except (NotFound, Unavailable):  # deleted meanwhile, or its machine is unreachable
        return
    text = query.text.strip().lower()
    for line in lines:
        if query.since is not None and line.at < query.since:
            continue
        if query.until is not None and line.at > query.until:
            continue
        if not text or text in _text(line):
            yield FoundLine(each.kind, each.flow.id, each.name, line)


def _text(line: LogLine) -> str:
    details = (f"{name}={value}" for name, value in line.fields.items())
    return " ".join((line.step or "", line.sink or "", line.message, *details)).lower()
