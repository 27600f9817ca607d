"""The streams and sinks that flows read and write, from their documents.

Uses raw documents: a document that is not running may have an invalid spec, and is still shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.control.registry.records import Record
from penstock.control.streams.logs import input_id
from penstock.engine.plan.flow import Lookup, output_ids
from penstock.specs.catalog import catalog
from penstock.specs.documents import derive_id
from penstock.specs.references import publishes_to

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class SinkEnd:
    """A sink of a flow."""

    id: str
    type: str
    path: str
    """The path of the sink in the document."""
    required: bool = True
    stream: str | None = None
    """The id of the stream that the sink publishes to, if it is a stream sink."""
    ref: str | None = None
    """The id of the Sink document that defines the sink, if it is not defined inline."""


def lookup_in(records: Iterable[Record]) -> Lookup:
    """A lookup among the given documents."""
    documents = {(record.kind, record.id): record.document for record in records}
    return lambda kind, id: documents.get((kind, id))


def spec_of(document: Raw) -> Raw:
    """The spec of a document, empty if it has none."""
    spec = document.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def mappings(values: Any) -> list[Raw]:
    """The entries of a list that are mappings."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def sink_ends(document: Raw, lookup: Lookup) -> list[SinkEnd]:
    """The sinks of a document with a flow, under the ids that the flow uses."""
    spec, kind = spec_of(document), document.get("kind")
    if kind == "Task":
        outputs = [(path, o) for path, o in _placed(spec, "outputs") if o.get("stream")]
        ids = output_ids([str(output["stream"]) for _, output in outputs])
        return [
            SinkEnd(sink, "stream", path, stream=derive_id(str(output["stream"])))
            for sink, (path, output) in zip(ids, outputs, strict=True)
        ]
    if kind == "Source":
        stream = publishes_to(document)
        return [SinkEnd("stream", "stream", "spec", stream=derive_id(stream))] if stream else []
    if kind == "Sink":
        return [SinkEnd(_type(spec), _type(spec), "spec")]
    return list(_of_pipeline(spec, lookup))


def _of_pipeline(spec: Raw, lookup: Lookup) -> Iterator[SinkEnd]:
    for path, sink in _placed(spec, "sinks"):
        ref, described = sink.get("ref"), sink
        if ref is not None:
            described = spec_of(lookup("Sink", derive_id(str(ref))) or {})
        connector, stream = _type(described), described.get("stream")
        yield SinkEnd(
            str(sink.get("id") or ref or connector),
            connector,
            path if ref is None else f"{path}.ref",
            sink.get("required") is not False,
            derive_id(stream) if connector == "stream" and isinstance(stream, str) else None,
            None if ref is None else derive_id(str(ref)),
        )


def _placed(spec: Raw, field: str) -> list[tuple[str, Raw]]:
    """The entries of a list in a spec that are mappings, each with its path."""
    values = spec.get(field)
    listed = enumerate(values) if isinstance(values, list) else ()
    return [(f"spec.{field}[{i}]", value) for i, value in listed if isinstance(value, Mapping)]


def input_stream(document: Raw, document_id: str, lookup: Lookup) -> str | None:
    """The id of the stream that the flow of a document reads; None if it reads no stream."""
    spec, kind = spec_of(document), document.get("kind")
    if kind in ("Task", "Sink"):
        named = spec.get("input" if kind == "Task" else "stream")
        return derive_id(named) if isinstance(named, str) and named else None
    if kind == "Source":
        if is_held(spec) and not is_push(spec):
            return f"source:{input_id(document_id)}"
        return None if spec.get("type") != "stream" else _named(spec)
    source = spec.get("source")
    referred: Raw | None = None
    if isinstance(source, Mapping) and source.get("ref") is not None:
        referred = lookup("Source", derive_id(str(source["ref"]))) or {}
        source = referred.get("spec")
    if not isinstance(source, Mapping):
        return None
    if source.get("type") == "stream":
        return _named(source)
    if is_held(source):
        published = publishes_to(referred) if referred and is_push(source) else None
        return derive_id(published) if published else input_id(document_id)
    return None


def is_held(source: Raw) -> bool:
    """Whether the events of a source are stored in a stream before a flow reads them."""
    return bool(getattr(catalog("source").classes.get(str(source.get("type"))), "held", False))


def is_push(source: Raw) -> bool:
    """Whether clients push events to a source."""
    return bool(getattr(catalog("source").classes.get(str(source.get("type"))), "push", False))


def _type(spec: Raw) -> str:
    return str(spec.get("type") or "unknown")


def _named(source: Raw) -> str | None:
    stream = source.get("stream")
    return derive_id(stream) if isinstance(stream, str) and stream else None
