"""Flows as readers of streams from the moment they are saved: events are kept for them before they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.ends import input_stream, spec_of
from penstock.control.registry.records import Record
from penstock.control.state import flow_name
from penstock.control.streams import Streams
from penstock.engine.flow import Lookup
from penstock.errors import NotFound
from penstock.specs.documents import derive_id


def expect_reader(streams: Streams, record: Record, lookup: Lookup, before: Record | None = None) -> None:
    """Let the stream that a flow reads know of the flow; `before` is the flow as it was until now.

    A flow that begins at the latest event wants none that comes before it runs.
    """
    stream = _awaited(record, lookup)
    earlier = _awaited(before, lookup) if before else None
    if earlier is not None and earlier != stream:
        _forget(streams, earlier, flow_name(record))
    if stream is not None:
        try:
            streams.log(stream).storage.expect(flow_name(record))
        except NotFound:  # one that rests may name a stream that is not there yet
            return


def _awaited(record: Record, lookup: Lookup) -> str | None:
    """The stream whose events are to be kept for a flow before it runs."""
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


def _forget(streams: Streams, stream: str, reader: str) -> None:
    """A flow that has never run reads another stream now."""
    try:
        storage = streams.log(stream).storage
    except NotFound:
        return
    if any(cursor.reader == reader and not cursor.has_run for cursor in storage.cursors()):
        storage.forget_cursor(reader)
