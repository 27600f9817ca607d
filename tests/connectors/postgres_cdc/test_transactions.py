"""Transactions, crashes and the slot of the receiver, on a real server, without Spark."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.connectors.postgres_cdc import changes as changes_module
from tests.postgres_cdc_log import Log
from tests.postgres_cdc_place import ORDERS, Place, content, folded

NIGHTLY = os.environ.get("PENSTOCK_TEST_NIGHTLY") == "1"


def test_transactions_stay_whole(place: Place, logs: list[Log], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MOST_EVENTS", 700)
    place.run(ORDERS)
    log = Log(place.source("orders"))
    logs.append(log)
    log.open()
    place.run("INSERT INTO orders SELECT i, 'a', 0 FROM generate_series(1, 5000) i")
    place.run("UPDATE orders SET amount = 1 WHERE id <= 10", "DELETE FROM orders WHERE id = 7")
    log.drain()
    spans: dict[str, list[tuple[int, int, bool]]] = {}
    for first, end, name, ends in log.tx:
        spans.setdefault(name, []).append((first, end, ends))
    assert [sum(end - first for first, end, _ in parts) for parts in spans.values()] == [5000, 10, 1]
    assert all(
        [ends for *_, ends in parts] == [False] * (len(parts) - 1) + [True] for parts in spans.values()
    )
    (large, *_) = spans.values()
    assert len(large) == 8
    assert {event["tx"] for event in log.events[:5000]} == {next(iter(spans))}
    assert folded(log.events)["public.orders"] == content(place)


def test_after_a_crash_nothing_is_missing_and_nothing_repeated(
    place: Place, logs: list[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashes before the append, and between the append and the confirmation, also within a transaction."""
    monkeypatch.setattr(changes_module, "MOST_EVENTS", 90)
    place.run(ORDERS, "INSERT INTO orders SELECT i, 'c', 0 FROM generate_series(1, 500) i")
    log = Log(place.source("orders", snapshot_chunk_rows=70))
    logs.append(log)
    log.open()
    steps = 0
    for turn in range(400):
        if turn == 5:
            place.run("INSERT INTO orders SELECT i, 'd', 0 FROM generate_series(1001, 1400) i")
            place.run("UPDATE orders SET amount = id WHERE id % 3 = 0")
        lost, confirm = turn % 3 == 0, turn % 3 == 1
        steps = 0 if log.step(0.05, lost=lost, confirm=confirm) else steps + 1
        if not confirm:
            log.open()
        if steps > 6 and turn > 20:
            break
    log.drain()
    assert len({event["id"] for event in log.events}) == len(log.events)
    assert folded(log.events)["public.orders"] == content(place)
    changed = [event for event in log.events if event["op"] != "r"]
    assert len(changed) == 400 + len([key for key in content(place) if json.loads(key)["id"] % 3 == 0])


def test_a_snapshot_goes_on_after_a_crash_under_writes(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders SELECT i * 2, 'c', 0 FROM generate_series(1, 3000) i")
    place.run("CREATE TABLE more (id bigint PRIMARY KEY, customer text, amount numeric(10,2))")
    place.run("INSERT INTO more SELECT i, 'm', 0 FROM generate_series(1, 500) i")
    log = Log(place.source("orders", "more", snapshot_chunk_rows=250))
    logs.append(log)
    stop = threading.Event()

    def write() -> None:
        with place.server.connect(place.database) as sql:
            for i in range(10**6):
                if stop.is_set():
                    return
                n = (i * 7919) % 6000
                sql.execute(
                    "INSERT INTO orders VALUES (%s, 'w', 0) "
                    "ON CONFLICT (id) DO UPDATE SET amount = orders.amount + 1",
                    (n,),
                )
                sql.execute("DELETE FROM orders WHERE id = %s", ((n * 31) % 6000,))
                sql.execute("UPDATE orders SET id = id + 10000 WHERE id = %s", ((n * 17) % 6000,))
                sql.execute("UPDATE more SET amount = %s WHERE id = %s", (i % 100, n % 500))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        log.open()
        for turn in range(14):
            log.step(lost=turn % 4 == 1)
            if turn % 2:
                log.open()  # the exported snapshot is gone
            time.sleep(0.05)
    finally:
        stop.set()
        writer.join()
    log.drain()
    found = folded([{**event, "after": event["after"]} for event in log.events])
    for table in ("orders", "more"):
        expected = {key: {**row, "amount": str(row["amount"])} for key, row in content(place, table).items()}
        assert found[f"public.{table}"] == expected, table
    rows = [event["id"] for event in log.events if event["op"] == "r"]
    assert len(rows) == len(set(rows))


ACTIONS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("iiuudkt"), st.integers(0, 12), st.integers(0, 12), st.text(max_size=5)),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=60 if NIGHTLY else 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(transactions=ACTIONS, crash=st.integers(0, 6), full=st.booleans())
def test_random_transactions_give_the_table(
    place: Place, transactions: list[list[tuple[str, int, int, str]]], crash: int, full: bool
) -> None:
    place.run("DROP TABLE IF EXISTS orders", ORDERS)
    if full:
        place.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    place.run("INSERT INTO orders SELECT i, 'c' || i, i FROM generate_series(0, 5) i")
    name = f"random_{time.time_ns()}"
    log = Log(place.source("orders", slot=name, publication=name, snapshot_chunk_rows=2), f"pipeline:{name}")
    try:
        log.open()
        for number, actions in enumerate(transactions):
            # A snapshot holds a lock on its tables, for which TRUNCATE waits.
            refused = (psycopg.errors.UniqueViolation, psycopg.errors.LockNotAvailable)
            with contextlib.suppress(*refused), place.sql.transaction():
                place.sql.execute("SET LOCAL lock_timeout = '50ms'")
                for action in actions:
                    _act(place.sql, *action)
            log.step(0.05, lost=number == crash)
            if number in (crash, crash + 1):
                log.open()
        log.drain()
        assert folded(log.events).get("public.orders", {}) == content(place)
        assert len({event["id"] for event in log.events}) == len(log.events)
    finally:
        log.close()
        place.drop(name)


def _act(sql: psycopg.Connection[Any], action: str, key: int, other: int, text: str) -> None:
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    if action == "i":
        sql.execute(
            "INSERT INTO orders VALUES (%s, %s, %s) "
            "ON CONFLICT (id) DO UPDATE SET customer = EXCLUDED.customer",
            (key, text, other),
        )
    elif action == "u":
        sql.execute(
            "UPDATE orders SET customer = %s, amount = %s WHERE id = %s", (text, Decimal(other) / 4, key)
        )
    elif action == "k":
        sql.execute("UPDATE orders SET id = %s WHERE id = %s", (other, key))
    elif action == "d":
        sql.execute("DELETE FROM orders WHERE id = %s", (key,))
    else:
        sql.execute("TRUNCATE orders")


def test_the_slot_is_confirmed_only_by_an_acknowledgement(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS)
    log = Log(place.source("orders", slot="careful", heartbeat_ms=100))
    logs.append(log)
    log.open()
    log.drain()
    place.run("INSERT INTO orders VALUES (1, 'a', 1)")
    before = place.slot("careful")
    assert log.step(2.0, confirm=False)
    for _ in range(5):
        log.step(0.1)
    assert place.slot("careful") == before
    log.open()
    log.drain()
    assert [event["op"] for event in log.events] == ["c"]
    assert place.slot("careful") > before


def test_an_idle_slot_moves_on(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "CREATE TABLE busy (id int)")
    log = Log(place.source("orders", slot="idle", heartbeat_ms=100))
    logs.append(log)
    log.open()
    log.drain()
    before = place.slot("idle")
    place.run("INSERT INTO busy SELECT * FROM generate_series(1, 10000)")
    (written,) = place.rows("SELECT pg_current_wal_lsn() - '0/0'")[0]
    until = time.monotonic() + 20
    while place.slot("idle") < int(written) and time.monotonic() < until:
        log.step(0.1)
    assert place.slot("idle") >= int(written) > before
    assert log.receiver is not None
    assert log.receiver.lag() == 0
