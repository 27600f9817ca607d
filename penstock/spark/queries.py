"""The state of a streaming query beyond Spark's public interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

LOOKING = "Getting offsets from"
WAITING = ("Waiting for data to arrive", "Waiting for next trigger")
"""How the messages of a query's status begin, or read."""


def failure_in(query: Any) -> Any | None:
    """The Java exception that has ended a query, with its causes; None if there is none."""
    found = query._jsq.exception()
    return found.get() if found.isDefined() else None


def has_nothing_to_do(query: Any) -> bool:
    """Whether a query waits for events."""
    return query.status["message"] in WAITING


def is_between_batches(query: Any) -> bool:
    """Whether the last batch is committed and no other has begun. A source may take long to find one."""
    status = query.status
    return not status["isTriggerActive"] or status["message"].startswith(LOOKING)


def progress_since(query: Any, seen: tuple[int, str] | None) -> Iterator[Mapping[str, Any]]:
    """The reports of progress after one that is known, the oldest first. Others are not read or parsed."""
    last = query._jsq.lastProgress()
    if last is None or _mark(last) == seen:  # most of the time
        return
    recent = query._jsq.recentProgress()
    first = len(recent)
    while first > 0 and (seen is None or _mark(recent[first - 1]) > seen):
        first -= 1
    for number in range(first, len(recent)):
        yield json.loads(recent[number].json())


def _mark(progress: Any) -> tuple[int, str]:
    return int(progress.batchId()), str(progress.timestamp())
