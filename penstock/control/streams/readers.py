"""Registers flows as readers of streams when they are saved, so that events are retained until they run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.control.fleet.progress import flow_name
from penstock.control.graph.flow_ends import input_stream, spec_of
from penstock.control.registry.records import Record
from penstock.control.streams.logs import Streams
from penstock.engine.plan.flow import Lookup
from penstock.errors import NotFound
from penstock.specs.documents import derive_id

Saved = tuple[Record, Record | None]
"""A record, and the record before the change."""


def expect_readers(streams: Streams, changes: Iterable[Saved], lookup: Lookup) -> None:
    """Register flows as readers of their streams.

    A flow that starts at the latest event is not registered: it needs no events from before its first run.
    """
    readers: dict[str, list[str]] = {}
    for record, before in changes:
        stream = _awaited(record, lookup)
        earlier = input_stream(before.document, before.id, lookup) if before else None
        if earlier is not None and earlier != stream:
            moved = earlier != input_stream(record.document, record.id, lookup)
            _leave(streams, earlier, record, moved=moved)
        if stream is not None:
            readers.setdefault(stream, []).append(flow_name(record))
    for stream, names in readers.items():
        # An inactive flow may name a stream that does not exist yet.
        with contextlib.suppress(NotFound):
            streams.log(stream).expect(names)


def _awaited(record: Record, lookup: Lookup) -> str | None:
    """The stream whose events are retained for a flow before its first run."""
    if record.flow is None or _position(record.document, lookup) == "latest":
        return None
    return input_stream(record.document, record.id, lookup)


def _position(document: Mapping[str, Any], lookup: Lookup) -> Any:
    spec = spec_of(document)
    if document.get("kind") in ("Task", "Sink"):
        return spec.get("position")
    source = spec.get("source") if document.get("kind") == "Pipeline" else spec
    if isinstance(source, Mapping) and source.get("ref") is not None:
        source = spec_of(lookup("Source", derive_id(str(source["ref"]))) or {})
    return source.get("position") if isinstance(source, Mapping) else None


def _leave(streams: Streams, stream: str, record: Record, *, moved: bool) -> None:
    """Remove the cursor of a flow that has never run, or that has `moved` to another stream.

    While a flow has a worker, the run of its earlier revision may not have ended, and the new revision may be
    rolled back. In that case the worker removes the cursor, once the new revision runs.
    """
    reader = flow_name(record)
    done = moved and (record.flow is None or record.flow.worker is None)
    try:
        log = streams.log(stream)
    except NotFound:
        return
    if any(cursor.reader == reader and (done or not cursor.has_run) for cursor in log.storage.cursors()):
        log.forget_cursor(reader)
