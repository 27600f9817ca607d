from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.control.documents.service import Service
from penstock.control.graph.topology import Edge, Node, Topology, topology_of
from tests.api.kit import open_service
from tests.control.registry.kit import document, stream

STEP = {"type": "filter", "where": "true"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service without a worker."""
    with open_service(tmp_path) as found:
        yield found


def save(service: Service, kind: str, name: str, desired: str | None = "paused", **spec: Any) -> None:
    """Save a document as it is, valid or not."""
    saved = service.registry.create(document(kind, name, spec), desired=desired, check_references=False)
    if kind == "Stream":
        service.streams.ensure(saved)


def shape(found: Topology) -> set[tuple[str, str, str, str | None]]:
    return {(edge.begin, edge.end, edge.kind, edge.sink) for edge in found.edges}


def node(found: Topology, key: str) -> Node:
    (one,) = [each for each in found.nodes if each.key == key]
    return one


def test_nothing(service: Service) -> None:
    assert topology_of(service) == Topology([], [])


def test_ends_inside_a_pipeline_are_nodes_of_their_own(service: Service) -> None:
    sinks = [{"type": "drop"}, {"id": "lake", "type": "file", "path": "out"}]
    save(service, "Pipeline", "Orders", source={"type": "generate"}, sinks=sinks)
    found = topology_of(service)
    assert node(found, "Pipeline/orders") == Node(
        "Pipeline/orders", "Pipeline", "orders", "Orders", status="paused"
    )
    assert node(found, "Pipeline/orders#sinks/lake") == Node(
        "Pipeline/orders#sinks/lake", "Sink", "lake", "lake", "file", None, True, "Pipeline/orders"
    )
    assert node(found, "Pipeline/orders#source").type == "generate"
    assert shape(found) == {
        ("Pipeline/orders#source", "Pipeline/orders", "data", None),
        ("Pipeline/orders", "Pipeline/orders#sinks/drop", "data", "drop"),
        ("Pipeline/orders", "Pipeline/orders#sinks/lake", "data", "lake"),
    }
    assert {edge.flow for edge in found.edges} == {"Pipeline/orders"}


def test_references_lead_to_documents(service: Service) -> None:
    for name in ("raw", "Clean", "letters", "other", "late"):
        save(service, "Stream", name)
    save(service, "Source", "gen", None, type="generate")
    save(service, "Sink", "lake", None, type="file", path="out")
    save(service, "Task", "shared", None, processors=[{"type": "join", "stream": "other"}])
    save(
        service,
        "Pipeline",
        "orders",
        source={"ref": "gen"},
        tasks=["shared"],
        sinks=[{"ref": "lake"}, {"id": "clean", "type": "stream", "stream": "Clean"}],
        dead_letters="letters",
    )
    save(
        service,
        "Task",
        "count",
        input="clean",
        processors=[{"type": "window", "late": "late"}],
        outputs=[{"stream": "raw"}, {"stream": "raw"}],
    )
    save(service, "Sink", "out", type="console", stream="raw")
    found = topology_of(service)
    assert shape(found) == {
        ("Source/gen", "Pipeline/orders", "data", None),
        ("Task/shared", "Pipeline/orders", "definition", None),
        ("Stream/other", "Pipeline/orders", "join", None),
        ("Pipeline/orders", "Sink/lake", "data", "lake"),
        ("Pipeline/orders", "Stream/clean", "data", "clean"),
        ("Pipeline/orders", "Stream/letters", "dead_letters", None),
        ("Stream/clean", "Task/count", "data", None),
        ("Task/count", "Stream/raw", "data", "raw"),
        ("Task/count", "Stream/raw", "data", "raw:2"),
        ("Task/count", "Stream/late", "dead_letters", None),
        ("Stream/raw", "Sink/out", "data", None),
    }
    assert len({edge.key for edge in found.edges}) == len(found.edges)
    assert (node(found, "Sink/lake").status, node(found, "Sink/out").status) == (None, "paused")
    assert not any(each.inline for each in found.nodes)


def test_what_is_pushed_is_held_in_a_stream(service: Service) -> None:
    save(service, "Stream", "landing")
    save(service, "Source", "web", None, type="http", stream="landing")
    save(service, "Source", "hook", None, type="http")
    for name, source in (("own", {"type": "http"}), ("by_ref", {"ref": "hook"}), ("landed", {"ref": "web"})):
        save(service, "Pipeline", name, source=source, sinks=[])
    found = topology_of(service)
    assert shape(found) == {
        ("Pipeline/own#source", "Stream/own.in", "data", None),
        ("Stream/own.in", "Pipeline/own", "data", None),
        ("Source/hook", "Stream/by_ref.in", "data", None),
        ("Stream/by_ref.in", "Pipeline/by_ref", "data", None),
        ("Source/web", "Stream/landing", "data", None),
        ("Source/web", "Pipeline/landed", "definition", None),
        ("Stream/landing", "Pipeline/landed", "data", None),
    }
    held = node(found, "Stream/own.in")
    assert (held.inline, held.owner) == (True, "Pipeline/own")
    pushed = next(edge for edge in found.edges if edge.begin == "Source/web" and edge.kind == "data")
    assert pushed == Edge("Source/web", "Stream/landing", flow="Stream/landing")  # no flow moves these


def test_events_sent_to_a_stream_are_counted_by_it_only_if_it_has_one_producer(service: Service) -> None:
    save(service, "Stream", "raw")
    save(service, "Source", "sent", None, type="http", stream="raw")
    (alone,) = topology_of(service).edges
    assert (alone.begin, alone.end, alone.flow) == ("Source/sent", "Stream/raw", "Stream/raw")
    save(service, "Source", "made", type="generate", stream="raw")
    flows = {edge.begin: edge.flow for edge in topology_of(service).edges}
    assert flows == {"Source/sent": "", "Source/made": "Source/made"}


def test_streams_of_their_own_appear_with_their_first_event(service: Service) -> None:
    save(service, "Stream", "raw", schema="id BIGINT")
    save(service, "Pipeline", "raw", source={"type": "stream", "stream": "raw"}, sinks=[])
    reads = ("Stream/raw", "Pipeline/raw", "data", None)
    assert shape(topology_of(service)) == {reads}
    for id in ("raw.dead", "pipeline:raw.dead"):
        service.streams.log(id).append(pa.record_batch({"value": [b"x"]}))
    found = topology_of(service)
    assert shape(found) == {
        reads,
        ("Stream/raw", "Stream/raw.dead", "dead_letters", None),
        ("Pipeline/raw", "Stream/pipeline:raw.dead", "dead_letters", None),
    }
    assert node(found, "Stream/raw.dead").owner == "Stream/raw"
    assert node(found, "Stream/pipeline:raw.dead").owner == "Pipeline/raw"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"source": 5, "sinks": {"a": 1}, "tasks": "x", "processors": [1, None]},
        {"source": {"ref": 7}, "sinks": [{"ref": ["x"]}, 3, {"type": None}, {"type": "stream"}]},
        {"source": {"type": "stream", "stream": 5}, "tasks": [None, 3, "nobody"], "dead_letters": {"a": 1}},
        {"source": {"type": "nowhere"}, "sinks": [{"type": "nowhere"}], "processors": [{"stream": [1]}]},
    ],
)
@pytest.mark.parametrize("kind", ["Pipeline", "Source", "Sink", "Task"])
def test_what_is_not_valid_is_shown_as_far_as_it_goes(
    service: Service, kind: str, spec: dict[str, Any]
) -> None:
    save(service, kind, "odd", **spec, **({"input": "x", "outputs": [1]} if kind == "Task" else {}))
    found = topology_of(service)
    assert node(found, f"{kind}/odd").name == "odd"
    keys = {each.key for each in found.nodes}
    assert all({edge.begin, edge.end} <= keys for edge in found.edges)


def test_an_edge_to_what_does_not_exist_is_left_out(service: Service) -> None:
    save(
        service,
        "Pipeline",
        "orders",
        source={"type": "stream", "stream": "nobody"},
        sinks=[{"ref": "nobody"}, {"type": "stream", "stream": "nobody"}],
        dead_letters="nobody",
    )
    found = topology_of(service)
    assert (len(found.nodes), found.edges) == (1, [])


def test_many_documents_take_a_query_for_each_kind(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [stream(f"s{i}") for i in range(100)]
    documents += [
        document("Sink", f"k{i}", {"type": "console", "stream": f"s{i}"}) | {"status": "paused"}
        for i in range(100)
    ]
    service.registry.apply_import(documents)
    asked: list[str] = []
    listed = service.registry.list

    def counted(kind: str, **filters: Any) -> Any:
        asked.append(kind)
        return listed(kind, **filters)

    monkeypatch.setattr(service.registry, "list", counted)
    monkeypatch.setattr(service.registry, "find", None)
    found = topology_of(service)
    assert (len(found.nodes), len(found.edges), len(asked)) == (200, 100, 5)


def test_labels_are_those_of_the_document(service: Service) -> None:
    labelled = stream("Clicks")
    labelled["metadata"]["labels"] = {"team": "web"}
    service.registry.create(labelled)
    assert node(topology_of(service), "Stream/clicks").labels == {"team": "web"}
