"""Test runs of documents, run by a worker."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.documents.service import Service
from penstock.control.questions.trial_worker import Tested, TestRequest
from penstock.control.streams.doors import Door
from penstock.control.streams.pages import read_page, start_of
from penstock.engine.trials.samples import META
from penstock.errors import PenstockError, Problem
from penstock.specs.positions import LATEST, Position


class TestRefused(PenstockError):
    """A worker has rejected a test run, or could not complete it."""

    def __init__(self, status: int, problems: Sequence[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


def ask(service: Service, request: TestRequest) -> Tested:
    """The result of a test run on a worker."""
    message, hint = "no worker is ready for a test run", "wait a moment and try again"
    no_worker = Problem(code="no_worker", message=message, hint=hint)
    answer = service.judge.ask(lambda worker: service.rpc.test(worker, request), no_worker, by="apart")
    if answer.result is None:
        raise TestRefused(answer.status, answer.problems)
    return answer.result


def events_of(door: Door, position: Position, count: int) -> list[dict[str, Any]]:
    """Up to `count` events of a stream from a position on, as samples; at `latest`, the last ones."""
    found: list[Mapping[str, Any]] = []
    start = start_of(door, position, count if position == LATEST else None)
    end = door.log.bounds().next
    while start < end and len(found) < count:
        page = read_page(door, start, count - len(found))
        if page.next <= start:
            break
        found += page.events
        start = page.next
    return [sample_of(event) for event in found]


def sample_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of a stream as a sample."""
    meta = {"time": event["time"], "key": _text(event["key"]), "headers": event["headers"] or None}
    known = {name: value for name, value in meta.items() if value is not None}
    columns = event["columns"] if "columns" in event else {"value": _text(event["value"])}
    return {**columns, META: known}


def _text(value: Any) -> str | None:
    """A value as text: samples can't contain bytes that are not text, so those are replaced."""
    if isinstance(value, Mapping):
        return base64.b64decode(value["base64"]).decode(errors="replace")
    return None if value is None else str(value)
