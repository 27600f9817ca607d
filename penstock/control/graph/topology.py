"""The whole registry as a graph: sources, streams, flows and sinks, and the paths of events between them.

Built from raw documents, so that invalid ones are shown too. Edges to missing documents are omitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from penstock.control.documents.service import Service
from penstock.control.graph.flow_ends import (
    SinkEnd,
    input_stream,
    is_held,
    lookup_in,
    mappings,
    sink_ends,
    spec_of,
)
from penstock.control.graph.layout import all_records, key_of
from penstock.control.registry.records import Record
from penstock.control.streams.catalogue import Present, present_streams
from penstock.control.streams.logs import Streams, dead_letters_id, input_id
from penstock.errors import Unavailable
from penstock.specs.documents import derive_id
from penstock.specs.references import publishes_to
from penstock.streams.home import StreamPlace

EdgeKind = Literal["data", "dead_letters", "join", "definition"]


@dataclass(frozen=True)
class Node:
    """A document, or a source, sink or stream that is part of one (`inline`, with an `owner`)."""

    key: str
    kind: str
    id: str
    name: str
    type: str | None = None
    status: str | None = None
    inline: bool = False
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """A path of events, or a document that defines a part of another.

    The metrics of an edge are those of `flow`: of its `sink`, or of its input. If no flow moves the events,
    `flow` is the key of the stream that they are sent to, or empty if the stream has other writers too: the
    stream doesn't count events per writer.
    """

    begin: str
    end: str
    flow: str
    kind: EdgeKind = "data"
    sink: str | None = None

    @property
    def key(self) -> str:
        """The key of the edge, unique in the graph."""
        return f"{self.begin}>{self.end}:{self.kind}:{self.flow}{f'#{self.sink}' if self.sink else ''}"


@dataclass(frozen=True)
class Topology:
    """The graph of a registry: its nodes and edges."""

    nodes: list[Node]
    edges: list[Edge]


def topology_of(service: Service) -> Topology:
    """The graph of all registered documents: one query per kind."""
    return _Graph(all_records(service), service.streams).whole()


class _Graph:
    def __init__(self, records: Sequence[Record], streams: Streams) -> None:
        self._records, self._streams = records, streams
        self._lookup = lookup_in(records)
        self._nodes: dict[str, Node] = {}
        self._edges: dict[str, Edge] = {}

    def whole(self) -> Topology:
        for record in self._records:
            connector = spec_of(record.document).get("type") if record.kind in ("Source", "Sink") else None
            status = record.flow.status if record.flow else None
            key = key_of(record.kind, record.id)
            labels = (record.document.get("metadata") or {}).get("labels") or {}
            self._add(Node(key, record.kind, record.id, record.name, _text(connector), status, labels=labels))
        for record in self._records:
            {
                "Stream": lambda _: None,
                "Source": self._source,
                "Task": self._task,
                "Sink": self._sink,
                "Pipeline": self._pipeline,
            }[record.kind](record)
        for found in present_streams(self._streams.home, self._records, self._lookup):
            if found.role != "registered":
                self._own(found)
        known = [edge for edge in self._edges.values() if {edge.begin, edge.end} <= self._nodes.keys()]
        writers = Counter(edge.end for edge in known if edge.kind == "data")
        edges = [replace(e, flow="") if e.flow == e.end and writers[e.end] > 1 else e for e in known]
        return Topology(list(self._nodes.values()), edges)

    # One method per kind

    def _source(self, record: Record) -> None:
        key, spec = key_of("Source", record.id), spec_of(record.document)
        if spec.get("type") == "stream" and (read := _text(spec.get("stream"))):
            from_ = key_of("Stream", derive_id(read))
            self._link(Edge(from_, key, from_))
        elif stream := publishes_to(record.document):
            into = key_of("Stream", derive_id(stream))
            self._link(Edge(key, into, key if record.flow else into, sink="stream" if record.flow else None))
        if record.flow is not None:
            self._letters(record)

    def _sink(self, record: Record) -> None:
        key, spec = key_of("Sink", record.id), spec_of(record.document)
        if record.flow is not None:
            self._reads(record, key)
            self._letters(record)
        elif spec.get("type") == "stream" and _text(spec.get("stream")):
            into = key_of("Stream", derive_id(spec["stream"]))
            self._link(Edge(key, into, into))

    def _task(self, record: Record) -> None:
        if record.flow is None:
            return  # its steps run in the pipelines that use it
        self._reads(record, key_of("Task", record.id))
        self._steps(record, [record.document])
        self._sinks(record)
        self._letters(record)

    def _pipeline(self, record: Record) -> None:
        key, spec = key_of("Pipeline", record.id), spec_of(record.document)
        self._pipeline_source(record, key, spec.get("source"))
        tasks = spec.get("tasks") if isinstance(spec.get("tasks"), list) else []
        named = [derive_id(task) for task in tasks or () if isinstance(task, str)]
        for task in named:
            self._link(Edge(key_of("Task", task), key, key, "definition"))
        self._steps(record, [record.document, *(self._lookup("Task", task) or {} for task in named)])
        self._sinks(record)
        self._letters(record)

    # Parts of documents

    def _pipeline_source(self, record: Record, key: str, source: Any) -> None:
        if not isinstance(source, Mapping):
            return
        begin = f"{key}#source"
        described: Mapping[str, Any] = source
        if source.get("ref") is not None:
            ref = derive_id(str(source["ref"]))
            begin, described = key_of("Source", ref), spec_of(self._lookup("Source", ref) or {})
        elif source.get("type") == "stream":
            self._reads(record, key)
            return
        else:
            connector = str(source.get("type"))
            self._add(Node(begin, "Source", "source", connector, connector, inline=True, owner=key))
        if not is_held(described):
            self._link(Edge(begin, key, key))
            return
        stream = self._reads(record, key)
        if stream == input_id(record.id):  # it stores the events of the source
            held = key_of("Stream", stream)
            self._add(Node(held, "Stream", stream, stream, inline=True, owner=key))
            self._link(Edge(begin, held, held))
        else:
            self._link(Edge(begin, key, key, "definition"))

    def _reads(self, record: Record, key: str) -> str | None:
        stream = input_stream(record.document, record.id, self._lookup)
        if stream is not None:
            self._link(Edge(key_of("Stream", stream), key, key))
        return stream

    def _sinks(self, record: Record) -> None:
        key = key_of(record.kind, record.id)
        for sink in sink_ends(record.document, self._lookup):
            self._link(Edge(key, self._end_of(key, sink), key, sink=sink.id))

    def _end_of(self, key: str, sink: SinkEnd) -> str:
        """The node of a sink."""
        if sink.ref is not None:
            return key_of("Sink", sink.ref)
        if sink.stream is not None:
            return key_of("Stream", sink.stream)
        inline = f"{key}#sinks/{sink.id}"
        self._add(Node(inline, "Sink", sink.id, sink.id, sink.type, inline=True, owner=key))
        return inline

    def _steps(self, record: Record, documents: Sequence[Mapping[str, Any]]) -> None:
        """Streams that steps join with, and streams for late events."""
        key = key_of(record.kind, record.id)
        for stream, joined in _step_streams(documents):
            other = key_of("Stream", derive_id(stream))
            self._link(Edge(other, key, key, "join") if joined else Edge(key, other, key, "dead_letters"))

    def _letters(self, record: Record) -> None:
        """The stream that a document names for dead letters."""
        if _text(spec_of(record.document).get("dead_letters")):
            key = key_of(record.kind, record.id)
            self._link(Edge(key, key_of("Stream", dead_letters_id(record)), key, "dead_letters"))

    def _holds_events(self, place: StreamPlace) -> bool:
        """Whether a stream has or had events; false while the stream is unreachable."""
        try:
            return self._streams.log_at(place.directory).bounds().next > 0
        except Unavailable:
            return False

    def _own(self, found: Present) -> None:
        """Add a stream that belongs to a document; a stream for misfits is added once it has events."""
        stream, owner = found.place.id, key_of(found.owner.kind, found.owner.id)
        key = key_of("Stream", stream)
        if found.role == "misfits" and not self._holds_events(found.place):
            return
        self._add(Node(key, "Stream", stream, stream, inline=True, owner=owner))
        if found.role == "letters":
            self._link(Edge(owner, key, owner, "dead_letters"))
        elif found.of is not None:
            self._link(Edge(key_of("Stream", found.of), key, key, "dead_letters"))

    def _add(self, node: Node) -> None:
        self._nodes.setdefault(node.key, node)

    def _link(self, edge: Edge) -> None:
        self._edges.setdefault(edge.key, edge)


def _step_streams(documents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    for document in documents:
        for step in mappings(spec_of(document).get("processors")):
            if stream := _text(step.get("stream")):
                yield stream, True
            if late := _text(step.get("late")):
                yield late, False


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
