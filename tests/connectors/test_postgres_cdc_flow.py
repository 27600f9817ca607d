"""Pipelines from PostgreSQL: the conformance suite, kills, dead letters and whole transactions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from penstock.connectors.postgres_cdc import changes
from penstock.engine.plan.flow import resolve_flow
from penstock.engine.runtime import reception
from penstock.engine.runtime.reception import Reception
from penstock.frames.logs import LOGS
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.source_suite import Events, SourceSuite, SourceSystem
from tests.postgres_cdc_place import ORDERS, Place, content, folded
from tests.postgres_cdc_server import PASSWORD, USER, ReplicatingPostgres

pytestmark = pytest.mark.slow


class PostgresPlace(SourceSystem):
    lag = True
    outage_s = 60.0
    processors = ({"type": "sql", "query": "SELECT after.id, after.name FROM input"},)

    def __init__(self, server: ReplicatingPostgres, database: str) -> None:
        self.server, self.database = server, database
        with server.connect(database) as sql:
            sql.execute("CREATE TABLE numbers (id bigint PRIMARY KEY, name text)")

    def spec(self, **fields: Any) -> dict[str, Any]:
        url = self.server.url(self.database)
        return {"type": "postgres_cdc", "url": url, "tables": ["numbers"], **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        with self.server.connect(self.database) as sql, sql.transaction(), sql.cursor() as cursor:
            rows = [(event["id"], event["name"]) for event in events]
            cursor.executemany("INSERT INTO numbers VALUES (%s, %s)", rows)

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        url, schema = self.server.url(self.database), "id BIGINT, name STRING"
        login = url.replace("penstock@", f"{USER}:{PASSWORD[:-1].replace(chr(39), '%27')}@")
        return {
            "address": (self.spec(url="postgresql://a@127.0.0.1:9/x", schema=schema), "postgres_unreachable"),
            "login": (self.spec(url=login, schema=schema), "postgres_login"),
            "table": (self.spec(tables=["nubmers"], schema=schema), "unknown_table"),
        }

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()


class TestPostgresCdcSource(SourceSuite):
    @pytest.fixture
    def system(self, replicating: ReplicatingPostgres) -> Iterator[PostgresPlace]:
        with replicating.database() as database:
            yield PostgresPlace(replicating, database)


@pytest.fixture
def place(replicating: ReplicatingPostgres) -> Iterator[Place]:
    with replicating.database() as name, replicating.connect(name) as sql:
        yield Place(replicating, name, sql)


def source_of(place: Place, *tables: str, **fields: Any) -> dict[str, Any]:
    url = place.server.url(place.database)
    return {"type": "postgres_cdc", "url": url, "tables": list(tables), **fields}


def test_columns_are_typed_and_what_does_not_fit_is_a_letter(bench: Bench, place: Place) -> None:
    place.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1.50), (2, 'b', 'NaN')")
    query = "SELECT op, after.amount * 2 AS double, before.id AS old FROM input"
    spec = {"processors": [{"type": "sql", "query": query}]}
    with bench.running(source_of(place, "orders"), to_files(bench.root / "out"), **spec) as kept:
        wait_until("the rows", lambda: len(files(bench.root / "out")) == 1)
        place.run("INSERT INTO orders VALUES (3, 'c', 'NaN')", "DELETE FROM orders WHERE id = 1")
        wait_until("the changes", lambda: len(files(bench.root / "out")) == 2)
        wait_until("the letters", lambda: kept.state.ops.get("dead_letters") == 2)
    assert files(bench.root / "out") == [
        {"op": "r", "double": 3.0, "old": None}, {"op": "d", "double": None, "old": 1},
    ]  # fmt: skip
    letters = bench.letters()
    assert [letter["code"] for letter in letters] == ["wrong_type"] * 2
    assert [json.loads(letter["event"])["id"] for letter in letters] == [2, 3]
    assert [letter["key"] for letter in letters] == [b'{"id":2}', b'{"id":3}']


def test_a_transaction_is_in_one_batch_though_it_came_in_parts(bench: Bench, place: Place) -> None:
    place.run(ORDERS)
    out, size = bench.root / "out", {"batch": {"max_events": 50}}
    with (
        patch.object(changes, "MOST_EVENTS", 40),
        bench.running(source_of(place, "orders"), to_files(out), **size),
    ):
        wait_until("the start", lambda: place.rows("SELECT 1 FROM pg_replication_slots WHERE active"))
        for first in range(0, 600, 200):
            place.run(f"INSERT INTO orders SELECT i, 'x', 0 FROM generate_series({first}, {first + 199}) i")
        wait_until("the events", lambda: len(files(out)) >= 600)
    for file in out.rglob("*.json"):
        counts: dict[str, int] = {}
        for line in file.read_text().splitlines():
            name = json.loads(line)["tx"]
            counts[name] = counts.get(name, 0) + 1
        assert set(counts.values()) <= {200}, counts


def test_only_a_snapshot_completes(bench: Bench, place: Place) -> None:
    place.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 0 FROM generate_series(1, 250) i")
    source = source_of(place, "orders", snapshot="only", snapshot_chunk_rows=100, envelope="debezium")
    state = bench.run(source, to_files(bench.root / "out"))
    assert state.outcome == "completed", state
    values = [json.loads(event["value"]) for event in files(bench.root / "out")]
    assert sorted(value["after"]["id"] for value in values) == list(range(1, 251))


STEPS = ("received", "appended", "confirmed")
CHUNK = 60


def receive_and_die(document: str, root: str, step: str, count: int) -> None:
    """Run the reception of a pipeline without its query, and kill the process after a step."""
    bench = Bench(None, Path(root))  # type: ignore[arg-type]
    flow = bench._with_input(resolve_flow(json.loads(document), lambda kind, name: None, bench.site), None)
    left = [count]

    def die(at: str) -> None:
        left[0] -= at == step
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    class Dying(Reception):
        def _append(self, received: Any, number: int) -> bool:
            die("received")
            done = super()._append(received, number)
            die("appended")
            return done

        def _ask_lag(self, receiver: Any) -> None:
            die("confirmed")

    changes.MOST_EVENTS = CHUNK
    running = Dying(flow, flow.source.component, lambda: None)  # type: ignore[arg-type]
    running.start()
    while running.failure is None:
        time.sleep(0.1)
    raise SystemExit(f"failed: {running.failure}")


def test_kills_at_each_step_lose_and_repeat_nothing(place: Place, tmp_path: Path) -> None:
    """Killed before the append, after it and before the confirmation, and after it."""
    place.run(ORDERS, "INSERT INTO orders SELECT i, 'c' || i, i FROM generate_series(1, 300) i")
    spec = {"source": source_of(place, "orders", snapshot_chunk_rows=CHUNK), "sinks": [{"type": "drop"}]}
    document = json.dumps({"kind": "Pipeline", "metadata": {"name": "suite"}, "spec": spec})
    for turn in range(9):
        code = (
            "from tests.connectors.test_postgres_cdc_flow import receive_and_die; "
            f"receive_and_die({document!r}, {str(tmp_path)!r}, {STEPS[turn % 3]!r}, {turn // 3 + 1})"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code], cwd=Path(__file__).parents[2], start_new_session=True
        )
        place.run(
            f"INSERT INTO orders SELECT i, 'n', {turn} FROM generate_series({turn}000, {turn}150) i "
            "ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount",
            f"DELETE FROM orders WHERE id % 7 = {turn % 7}",
            f"UPDATE orders SET id = -id - {turn} * 10000 WHERE id > 0 AND id % 11 = {turn}",
        )
        try:
            assert child.wait(60) == -signal.SIGKILL, "it was not killed"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # there were fewer batches than the step waits for
            child.wait()
    bench = Bench(None, tmp_path)  # type: ignore[arg-type]
    flow = bench._with_input(resolve_flow(json.loads(document), lambda kind, name: None, bench.site), None)
    last = Reception(flow, flow.source.component, lambda: None)  # type: ignore[arg-type]
    last.start()
    expected = content(place)
    try:
        wait_until("the same rows", lambda: _stored(bench) == expected, 60)
    finally:
        last.stop()
    events = [
        row for chunk in _log(bench).read(0) if chunk.batch is not None for row in chunk.batch.to_pylist()
    ]
    assert len({event["id"] for event in events}) == len(events)
    changed = {event["tx"] for event in events if event["tx"]}
    marked = {name for _, _, name, ends in _log(bench).storage.transactions(0, len(events)) if ends}
    assert marked == changed


def _log(bench: Bench) -> Any:
    return LOGS.log(bench.site.stream(bench.site.input).directory)


def _stored(bench: Bench) -> dict[str, dict[str, Any]]:
    rows = [
        row for chunk in _log(bench).read(0) if chunk.batch is not None for row in chunk.batch.to_pylist()
    ]
    return folded(rows).get("public.orders", {})


def test_the_reception_is_that_of_flows() -> None:
    """The kills above replace methods of it."""
    assert callable(reception.Reception._append)
    assert callable(reception.Reception._ask_lag)
