"""By which names sources are known that events are sent to, and where the events go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.control.documents.service import Service
from penstock.control.streams import ingest
from penstock.control.streams.doors import Doors
from penstock.control.streams.ingest import Entrances
from penstock.errors import Conflict, NotFound
from tests.api.kit import open_service, pipeline, stream


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with open_service(tmp_path) as found:
        yield found


def source(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Source", "metadata": {"name": name}, "spec": {"type": "http", **spec}}


def pushed(name: str, **spec: Any) -> dict[str, Any]:
    return pipeline(name, source={"type": "http", **spec})


def code(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.problems[0].code)


def test_a_source_goes_to_its_stream(service: Service) -> None:
    service.registry.create(stream("Events"))
    service.registry.create(source("Shop front", stream="Events", atomic=True, max_body_bytes=99))
    found = Entrances(service).find("Shop front")
    assert (found.streams, found.atomic, found.max_body_bytes) == (("events",), True, 99)
    assert Entrances(service).find("shop_front") == found


def test_a_source_without_a_stream_goes_to_all_who_take_from_it(service: Service) -> None:
    service.registry.create(source("shop", path="/shop/orders"))
    entrances = Entrances(service)
    with pytest.raises(Conflict) as refused:
        entrances.find("shop")
    assert code(refused) == "nobody_reads"
    assert entrances.known("shop") is None
    for name in ("One", "two"):
        service.registry.create(pipeline(name, source={"ref": "Shop"}))
    assert entrances.find("shop").streams == ("one.in", "two.in")
    assert entrances.find("shop/orders").streams == ("one.in", "two.in")


def test_a_pipeline_is_known_by_its_id_and_its_path(service: Service) -> None:
    service.registry.create(pushed("Orders", path="/incoming", schema="id BIGINT"))
    entrances = Entrances(service)
    for name in ("orders", "Orders", "incoming", "/incoming/"):
        assert entrances.find(name).streams == ("orders.in",)
        assert entrances.known(name) == entrances.find(name)
    door = Doors(service).find("orders.in")
    assert door.spec.schema_ == "id BIGINT"
    assert door.dead_id == "orders.in.dead"


def test_an_id_wins_over_a_path_and_two_paths_are_a_quarrel(service: Service) -> None:
    service.registry.create(pushed("first", path="same"))
    service.registry.create(pushed("second", path="/same"))
    service.registry.create(pushed("third", path="first"))
    entrances = Entrances(service)
    with pytest.raises(Conflict) as refused:
        entrances.find("same")
    assert code(refused) == "ambiguous_path"
    assert "pipeline 'first' and pipeline 'second'" in str(refused.value)
    assert entrances.find("first").streams == ("third.in",)
    service.registry.create(stream("s"))
    service.registry.create(source("first", stream="s"))
    assert entrances.find("first").streams == ("s",)


def test_what_is_no_entrance(service: Service) -> None:
    with pytest.raises(NotFound) as nothing:
        Entrances(service).find("orders")
    assert "type http" in str(nothing.value)
    service.registry.create(pushed("orders"))
    service.registry.create(pipeline("made"))
    with pytest.raises(NotFound) as refused:
        Entrances(service).find("ordres")
    assert "did you mean 'orders'?" in str(refused.value)
    with pytest.raises(NotFound):
        Entrances(service).find("made")


def test_a_broken_document_hides_nobody(service: Service) -> None:
    service.registry.create(pushed("broken", colour="red"), check_references=False)
    service.registry.create(pushed("sound"))
    assert Entrances(service).find("sound").streams == ("sound.in",)


def test_changes_are_noticed_in_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "FRESH_S", 0.05)
    service.registry.create(pushed("orders"))
    entrances = Entrances(service)
    entrances.find("orders")
    assert entrances.known("orders") is not None
    service.registry.delete("Pipeline", "orders")
    time.sleep(0.1)
    assert entrances.known("orders") is None
    with pytest.raises(NotFound):
        entrances.find("orders")


def test_a_door_is_kept_until_its_stream_changes(service: Service) -> None:
    service.registry.create(stream("typed", schema="id BIGINT"))
    doors = Doors(service)
    assert doors.known("typed") is None
    door = doors.find("Typed")
    assert doors.known("typed") is door
    assert (door.dead_id, door.schema is not None) == ("typed.dead", True)
    record = service.registry.update("Stream", "typed", stream("typed", schema="id BIGINT, x INT"))
    service.streams.ensure(record)
    assert doors.known("typed") is None
    assert doors.find("typed").payload.names == ["id", "x"]
    service.streams.remove(record)
    assert doors.known("typed") is None


def test_an_input_has_the_schema_of_the_source_that_a_pipeline_refers_to(service: Service) -> None:
    service.registry.create(source("shop", schema="id BIGINT"))
    service.registry.create(pipeline("one", source={"ref": "Shop"}, buffer={"type": "wal"}))
    door = Doors(service).find("one.in")
    assert (door.payload.names, door.spec.wal.enabled) == (["id"], True)


def test_a_source_that_makes_its_stream_goes_there(service: Service) -> None:
    service.registry.create(source("Shop", auto_create_stream=True))
    assert Entrances(service).find("shop").streams == ("shop",)
    assert Doors(service).find("shop").id == "shop"
