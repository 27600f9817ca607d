"""The logs behind documents: made, changed, found and removed with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.control.documents.service import Service
from penstock.control.streams.logs import Streams, dead_letters_id
from penstock.errors import Invalid, NotFound
from penstock.streams.storage import Cursor
from tests.api.kit import open_service, pipeline, stream

EVENTS = pa.RecordBatch.from_pydict({"value": pa.array([b"a", b"b"], pa.binary())})
TYPED = pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with open_service(tmp_path) as found:
        yield found


@pytest.fixture
def streams(service: Service) -> Streams:
    return service.streams


def typed(name: str, ddl: str, **spec: Any) -> dict[str, Any]:
    return {**stream(name), "spec": {"schema": ddl, **spec}}


def test_a_stream_that_is_saved_has_a_log(service: Service, streams: Streams) -> None:
    service.registry.create(stream("Orders raw"))
    assert streams.log("Orders raw") is streams.log("orders_raw")
    assert streams.log("orders_raw").append(EVENTS).next == 2
    with pytest.raises(NotFound, match="did you mean 'orders_raw'"):
        streams.log("order_raw")


def test_changed_settings_reach_the_log(service: Service, streams: Streams) -> None:
    record = service.registry.create(stream("s"))
    log = streams.log("s")
    log.append(EVENTS)
    changed = {**stream("s"), "spec": {"wal": {"sync": True}}}
    streams.ensure(service.registry.update("Stream", "s", changed, expected=record.etag))
    log.append(EVENTS)
    assert log.storage.spec.wal.sync


def test_a_namesake_of_a_deleted_stream_is_empty(service: Service, streams: Streams) -> None:
    service.registry.create(typed("s", "id INT"))
    streams.log("s").append(TYPED)
    directory = streams.place("s").directory
    streams.remove(service.registry.delete("Stream", "s"))
    assert not directory.exists()
    assert not (streams.home.root / "s.dead").exists()
    service.registry.create(typed("s", "id INT"))
    assert streams.log("s").bounds().next == 0


def test_only_what_is_pushed_to_has_an_input(service: Service, streams: Streams) -> None:
    service.registry.create(stream("s"))
    service.registry.create(pipeline("pushed", source={"type": "http", "schema": "id INT"}))
    service.registry.create(pipeline("pulled", source={"type": "stream", "stream": "s"}))
    found = {place.id for place in streams.all()}
    assert found == {"s", "pushed.in", "pushed.in.dead"}
    with pytest.raises(NotFound):
        streams.place("pulled.in")


def test_a_pipeline_that_is_not_valid_does_not_keep_the_others_from_being_looked_after(
    service: Service, streams: Streams
) -> None:
    broken = {**pipeline("broken", source={"type": "nothing"}), "status": "paused"}
    service.registry.create(broken, desired="paused", check_references=False)
    service.registry.create(stream("s"))
    assert [place.id for place in streams.all()] == ["s"]


def test_the_buffer_of_a_pipeline_says_where_its_input_is_kept(service: Service, streams: Streams) -> None:
    source = {"type": "http", "path": "/x"}
    for kind in ("memory", "sqlite", "wal"):
        service.registry.create(pipeline(kind, source=source, buffer={"type": kind}))
    service.registry.create(pipeline("default", source=source))
    memory, sqlite, wal = (streams.place(f"{kind}.in").spec for kind in ("memory", "sqlite", "wal"))
    assert streams.place("default.in").spec == wal
    assert (memory.wal.enabled, memory.buffer.spill) == (False, False)
    assert (sqlite.storage, sqlite.wal.enabled) == ("sqlite", True)
    assert (wal.storage, wal.wal.enabled) == ("local", True)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (typed("s", "id BIGINT, n STRING"), None),
        (typed("s", "id STRING"), "incompatible_type"),
        (stream("s"), "incompatible_schema"),
        (typed("s", "id INT", storage="sqlite"), "storage_in_use"),
    ],
)
def test_a_change_that_stored_events_cannot_follow_is_refused(
    service: Service, streams: Streams, changed: dict[str, Any], code: str | None
) -> None:
    record = service.registry.create(typed("s", "id INT"))
    streams.require_readable(record, changed)  # nothing is stored yet
    streams.log("s").append(TYPED)
    if code is None:
        streams.require_readable(record, changed)
        return
    with pytest.raises(Invalid) as refused:
        streams.require_readable(record, changed)
    assert [problem.code for problem in refused.value.problems] == [code]
    assert str(refused.value.problems[0].path).startswith("spec.")


def test_a_reader_that_is_gone_holds_nothing_up(service: Service, streams: Streams) -> None:
    service.registry.create(stream("s"))
    streams.log("s").move_cursor(Cursor("task:t:12345678", 0))
    streams.forget_reader("task:t:12345678")
    assert streams.log("s").storage.cursors() == []


def test_what_a_transient_stream_held_is_gone_after_a_restart(service: Service, streams: Streams) -> None:
    service.registry.create({**stream("s"), "spec": {"wal": {"enabled": False}}})
    streams.log("s").append(EVENTS)
    streams.stop()
    again = Streams(service.settings, service.registry)
    again.start()
    try:
        bounds = again.log("s").bounds()
        assert bounds.first == bounds.next >= 2
    finally:
        again.stop()


def test_dead_letters_of_namesakes_are_apart(service: Service, streams: Streams) -> None:
    typed_stream = service.registry.create(typed("orders", "id INT"))
    service.registry.create(pipeline("orders"))
    service.registry.create(stream("in"))
    task = {
        "input": "in",
        "processors": [{"type": "filter", "where": "true"}],
        "outputs": [{"stream": "orders"}],
    }
    service.registry.create({"kind": "Task", "metadata": {"name": "orders"}, "spec": task})
    records = [service.registry.get(kind, "orders") for kind in ("Pipeline", "Task")]
    ids = [dead_letters_id(record) for record in records]
    assert ids == ["pipeline:orders.dead", "task:orders.dead"]
    for number, id in enumerate(["orders.dead", *ids], 1):
        for _ in range(number):
            streams.log(id).append(EVENTS)
    found = {place.id: streams.log_at(place.directory).bounds().next for place in streams.all()}
    assert found["orders.dead"] == 2  # what did not fit the typed stream
    assert (found["pipeline:orders.dead"], found["task:orders.dead"]) == (4, 6)
    service.delete("Task", "orders")
    streams.ensure(typed_stream)
    assert {place.id for place in streams.all()} == {"in", "orders", "orders.dead", "pipeline:orders.dead"}
    with pytest.raises(NotFound):
        streams.place("task:orders.dead")


def test_dead_letters_have_the_short_id_where_it_is_free_and_go_with_their_flow(
    service: Service, streams: Streams
) -> None:
    record = service.registry.create(pipeline("orders"))
    assert not list(streams.all())  # made with the first letter
    streams.log(dead_letters_id(record)).append(EVENTS)
    (place,) = streams.all()
    assert (place.id, place.directory) == ("orders.dead", streams.place("orders.dead").directory)
    service.delete("Pipeline", "orders")
    assert not place.directory.exists()
    assert not list(streams.all())


def test_a_stream_that_a_pipeline_names_holds_its_dead_letters(service: Service) -> None:
    service.registry.create(stream("Kept letters"))
    record = service.registry.create(pipeline("orders", dead_letters="Kept letters"))
    assert dead_letters_id(record) == "kept_letters"
