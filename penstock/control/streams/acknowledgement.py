"""The meaning of an acknowledgement of events that are sent to a pipeline or a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.documents.service import Service
from penstock.control.graph.flow_ends import input_stream, is_push, spec_of
from penstock.control.registry.records import Record
from penstock.control.streams.logs import input_id
from penstock.errors import NotFound
from penstock.specs.documents import derive_id
from penstock.specs.references import publishes_to
from penstock.streams.guarantee import combined, guarantee


def acknowledgement(service: Service, record: Record) -> str | None:
    """The meaning of an acknowledgement as text; None if no events are sent to the document."""
    sentences: dict[str, str] = {}
    for stream in _streams(service, record):
        try:
            sentences[stream] = guarantee(service.streams.place(stream).spec)
        except NotFound:  # an inactive document may name a missing stream, or have an invalid buffer
            continue
    return combined(sentences) if sentences else None


def _streams(service: Service, record: Record) -> list[str]:
    """The streams that store events sent to a document."""
    spec = spec_of(record.document)
    if record.kind == "Pipeline":
        found = input_stream(record.document, record.id, service.document)
        source: Any = spec.get("source")
        if isinstance(source, Mapping) and source.get("ref") is not None:
            source = spec_of(service.document("Source", derive_id(str(source["ref"]))) or {})
        return [found] if found and isinstance(source, Mapping) and is_push(source) else []
    if record.kind != "Source" or not is_push(spec):
        return []
    if published := publishes_to(record.document):
        return [derive_id(published)]
    takers = service.registry.referrers("Source", record.id)
    return [input_id(taker.id) for taker in takers if taker.kind == "Pipeline"]
