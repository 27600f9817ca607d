"""Tables that change, and what is read of them, on a real server, without Spark."""

from __future__ import annotations

import json
import threading
from datetime import date
from decimal import Decimal

import pytest

from penstock.connectors.postgres_cdc import receiver as receiver_module
from penstock.connectors.received import Ended
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from tests.postgres_cdc_log import Log, no_stream
from tests.postgres_cdc_place import ORDERS, Place, folded


def test_a_table_that_is_added_is_read_and_then_followed(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    log = Log(place.source("public.*"))
    logs.append(log)
    log.drain()
    place.run("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1), (2)")
    place.run("INSERT INTO orders VALUES (2, 'b', 1)")
    log.open()
    place.run("INSERT INTO later VALUES (3)", "DELETE FROM later WHERE id = 1")
    log.drain()
    found = folded(log.events)
    assert set(found["public.later"]) == {'{"id":2}', '{"id":3}'}
    assert set(found["public.orders"]) == {'{"id":1}', '{"id":2}'}
    assert [event["op"] for event in log.events if event["table"] == "public.later"] == ["r", "r", "c", "d"]


def test_columns_that_are_added_are_reported_and_those_dropped_are_an_error(
    place: Place, logs: list[Log]
) -> None:
    place.run(ORDERS)
    log = Log(place.source("orders"))
    logs.append(log)
    warnings: list[str] = []
    log.open().warn = warnings.append
    log.drain()
    place.run("ALTER TABLE orders ADD note text", "INSERT INTO orders VALUES (1, 'a', 1, 'new')")
    log.drain()
    assert log.events[-1]["after"] == {"id": 1, "customer": "a", "amount": Decimal("1.00")}
    assert len(warnings) == 1
    assert "'note'" in warnings[0]
    place.run("ALTER TABLE orders DROP customer", "INSERT INTO orders VALUES (2, 1, 'x')")
    with pytest.raises(Invalid) as caught:
        log.drain()
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("column_dropped", "schema")

    place.run("ALTER TABLE orders ADD customer int", "INSERT INTO orders VALUES (3, 1, 'x', 5)")
    place.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")
    other = Log(log.source, "pipeline:other:1")
    logs.append(other)
    with pytest.raises(Invalid) as caught:
        other.drain()
    assert caught.value.problems[0].code == "column_changed"


def test_json_carries_columns_that_are_added(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS)
    log = Log(place.source("order*"))
    logs.append(log)
    log.drain()
    place.run("INSERT INTO orders VALUES (1, 'a', 1)", "ALTER TABLE orders ADD note text")
    place.run("INSERT INTO orders VALUES (2, 'b', 1, 'new')", "ALTER TABLE orders DROP customer")
    place.run("INSERT INTO orders VALUES (3, 1, 'last')")
    rows = [json.loads(event["after"]) for event in log.drain().events]
    assert [sorted(row) for row in rows] == [
        ["amount", "customer", "id"], ["amount", "customer", "id", "note"], ["amount", "id", "note"],
    ]  # fmt: skip


def test_a_table_that_was_renamed_or_created_again_is_noticed(
    place: Place, logs: list[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_module, "LOOK_S", 0.0)
    place.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    log = Log(place.source("order*"))
    logs.append(log)
    log.drain()
    place.run("DROP TABLE orders", ORDERS, "INSERT INTO orders VALUES (2, 'b', 1)")
    with pytest.raises(Unavailable) as caught:
        log.drain()
    assert caught.value.problems[0].code == "table_dropped"
    log.open()
    assert [event["_key"] for event in log.drain().events] == [b'{"id":1}', b'{"id":2}']

    monkeypatch.setattr(receiver_module, "LOOK_S", 100.0)
    place.run("ALTER TABLE orders RENAME TO purchases", "INSERT INTO purchases VALUES (3, 'c', 1)")
    with pytest.raises(Invalid) as renamed:
        log.drain()
    assert renamed.value.problems[0].code == "table_renamed"


def test_a_slot_that_waits_for_a_transaction_can_be_stopped(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS)
    log = Log(place.source("orders"))
    logs.append(log)
    with place.server.connect(place.database) as other, other.transaction():
        other.execute("INSERT INTO orders VALUES (1, 'a', 1)")
        log.receiver = log.source.receiver(Site(log.flow, 1, no_stream, "in", policy=UNRESTRICTED))
        stop = threading.Timer(1.0, log.receiver.stop)
        stop.start()
        with pytest.raises(PenstockError):
            log.receiver.open(None)
        stop.join()
    log.open()
    assert [event["op"] for event in log.drain().events] == ["r"]


def test_messages_need_no_table(place: Place, logs: list[Log]) -> None:
    log = Log(place.source(messages=["outbox"]))
    logs.append(log)
    log.drain()
    place.run(
        "SELECT pg_logical_emit_message(true, 'outbox', '{\"a\": 1}')",
        "SELECT pg_logical_emit_message(false, 'outbox', 'b')",
        "SELECT pg_logical_emit_message(true, 'other', 'c')",
    )
    log.drain()
    assert [event["message"]["content"] for event in log.events] == [b'{"a": 1}', b"b"]
    log.open()
    assert len(log.drain().events) == 2


def test_only_a_snapshot_leaves_nothing_behind(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders SELECT i, 'c', 0 FROM generate_series(1, 100) i")
    place.run("CREATE TABLE keyless (a int)", "INSERT INTO keyless SELECT * FROM generate_series(1, 50)")
    log = Log(place.source("orders", "keyless", snapshot="only", snapshot_chunk_rows=30))
    logs.append(log)
    with pytest.raises(Ended):
        log.drain()
    assert len(log.events) == 150
    assert len({event["id"] for event in log.events}) == 150
    assert place.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []
    assert place.rows("SELECT 1 FROM pg_publication") == []
    with pytest.raises(Ended):
        log.open()


def test_never_a_snapshot(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    log = Log(place.source("orders", snapshot="never"))
    logs.append(log)
    log.drain()
    place.run("INSERT INTO orders VALUES (2, 'b', 1)")
    assert [event["after"]["id"] for event in log.drain().events] == [2]


def test_a_partitioned_table_is_one_table(place: Place, logs: list[Log]) -> None:
    place.run(
        "CREATE TABLE parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
        "INSERT INTO parts VALUES (1, '2026-01-05'), (2, '2026-02-05')",
    )
    log = Log(place.source("parts", snapshot_chunk_rows=1))
    logs.append(log)
    log.drain()
    place.run("UPDATE parts SET day = '2026-02-06' WHERE id = 1")
    log.drain()
    assert {event["table"] for event in log.events} == {"public.parts"}
    assert [event["after"] and event["after"]["day"] for event in log.events[:2]] == [
        date(2026, 1, 5), date(2026, 2, 5),
    ]  # fmt: skip
    plain = [{**event, "after": event["after"] and {"k": 1}, "before": None} for event in log.events]
    keys = set(folded(plain)["public.parts"])
    assert keys == {'{"id":1,"day":"2026-02-06"}', '{"id":2,"day":"2026-02-05"}'}


def test_a_publication_of_ones_own_may_leave_out_rows_and_columns(place: Place, logs: list[Log]) -> None:
    place.run(
        ORDERS,
        "INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 20)",
        "CREATE PUBLICATION mine FOR TABLE orders (id, amount) WHERE (amount > 10)",
    )
    log = Log(place.source("order*", publication="mine"))
    logs.append(log)
    log.drain()
    place.run("INSERT INTO orders VALUES (3, 'c', 1), (4, 'd', 40)")
    rows = [json.loads(event["after"]) for event in log.drain().events]
    assert rows == [{"id": 2, "amount": 20.0}, {"id": 4, "amount": 40.0}]


def test_a_newer_epoch_takes_the_slot(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders VALUES (0, 'a', 1)")
    old, new = Log(place.source("orders")), Log(place.source("orders"), epoch=2)
    logs += [old, new]
    new.position = old.drain().position
    place.run("INSERT INTO orders VALUES (1, 'a', 1)")
    new.drain()
    assert [event["op"] for event in new.events] == ["c"]
    with pytest.raises(PenstockError):
        old.drain()
