"""The conformance suites on databases, and flows with real events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import analyse, offline
from penstock.testing.flows import Bench, files, to_files
from penstock.testing.sink_suite import SinkSuite, SinkSystem
from penstock.testing.source_suite import SOME, Events, SourceSuite, SourceSystem
from tests.databases import NAMES, Base, database
from tests.flows import Streams, letters, pipeline, run
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow


@pytest.fixture(params=NAMES if NIGHTLY else ["postgres"])
def base(request: pytest.FixtureRequest) -> Iterator[Base]:
    with database(request.param, request) as made:
        yield made


class Target(SinkSystem):
    keyed = True
    outage_s = 60.0

    def __init__(self, base: Base) -> None:
        self.base = base
        number = {"postgres": "BIGSERIAL", "mariadb": "BIGINT AUTO_INCREMENT", "sqlite": "INTEGER"}[base.kind]
        check = "CHECK (length(name) <= 100)" if base.kind == "sqlite" else ""
        base.run(f"CREATE TABLE t (n {number} PRIMARY KEY, id BIGINT, name VARCHAR(100) {check})")

    def spec(self, **fields: Any) -> dict[str, Any]:
        return self.base.spec(**{"table": "t", **fields})

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [
            {"id": number, "name": name}
            for number, name in self.base.rows("SELECT id, name FROM t ORDER BY n")
        ]

    def bad(self) -> tuple[dict[str, str], str]:
        code = "check_failed" if self.base.kind == "sqlite" else "too_long"
        return {"name": "repeat('x', CAST(seq % 2 AS INT) * 200)"}, code

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        found = {
            "table": (self.spec(table="tt"), "unknown_table"),
            "key": (self.spec(mode="upsert", key=["id"]), "no_unique_key"),
        }
        if self.base.kind == "sqlite":
            return {
                **found,
                "file": (self.spec(url="sqlite:////no/such/directory/file.db"), "unknown_database"),
            }
        scheme, _, rest = self.base.url.partition("://")
        login = {"url": f"{scheme}://nobody@{rest.rpartition('@')[2]}", "password": "secret"}
        return {
            **found,
            "address": (self.spec(url=f"{scheme}://penstock@127.0.0.1:9/x"), "sql_unreachable"),
            "host": (self.spec(url=f"{scheme}://penstock@no-such-host.invalid/x"), "unknown_host"),
            "login": (self.spec(**login), "sql_login"),
            "database": (self.spec(url=self.base.url + "_gone"), "unknown_database"),
        }

    def stop(self) -> None:
        self.base.stop()

    def start(self) -> None:
        self.base.start()


class TestSqlSink(SinkSuite):
    @pytest.fixture
    def system(self, base: Base) -> Target:
        return Target(base)


class Place(SourceSystem):
    outage_s = 60.0

    def __init__(self, base: Base) -> None:
        self.base = base
        base.run("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(100))")

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {"table": "t", "column": "id", "poll_ms": 50, "lag_ms": 200, "page": 70}
        return self.base.spec(**{**given, **fields})

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        rows = ", ".join(f"({event['id']}, '{event['name']}')" for event in events)
        self.base.run(f"INSERT INTO t VALUES {rows}")

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        known = self.spec(schema="id BIGINT, name STRING")
        found = {
            "table": ({**known, "table": "tt"}, "unknown_table"),
            "column": ({**known, "column": "nam"}, "unknown_column"),
        }
        if self.base.kind == "sqlite":
            return {**found, "file": ({**known, "url": "sqlite:////no/such/file.db"}, "unknown_database")}
        scheme, _, rest = self.base.url.partition("://")
        login = {"url": f"{scheme}://nobody@{rest.rpartition('@')[2]}", "password": "secret"}
        return {
            **found,
            "address": ({**known, "url": f"{scheme}://penstock@127.0.0.1:9/x"}, "sql_unreachable"),
            "login": ({**known, **login}, "sql_login"),
        }

    def stop(self) -> None:
        self.base.stop()

    def start(self) -> None:
        self.base.start()


class TestSqlSource(SourceSuite):
    @pytest.fixture
    def system(self, base: Base) -> Place:
        return Place(base)


def test_a_snapshot_completes(spark: SparkSession, base: Base, tmp_path: Path) -> None:
    place, bench = Place(base), Bench(spark, tmp_path)
    place.put(SOME)
    given = base.spec(table="t", mode="snapshot", page=70)
    state = bench.run(given, to_files(tmp_path / "out"))
    assert state.outcome == "completed", state.error
    assert sorted(files(tmp_path / "out"), key=lambda event: event["id"]) == SOME


NESTED = (
    "id BIGINT, tags ARRAY<STRING>, address STRUCT<city: STRING, zip: DECIMAL(20, 2)>, m MAP<STRING, INT>"
)


def test_nested_values_are_json_and_letters_have_them_again(
    spark: SparkSession, base: Base, tmp_path: Path
) -> None:
    streams = Streams(tmp_path)
    events = [
        {"id": i, "tags": ["it's", None], "address": {"city": "Köln", "zip": "1.50"}, "m": {"a": 1}}
        for i in (1, 2)
    ]
    file = tmp_path / "in.json"
    file.write_text("".join(json.dumps(event) + "\n" for event in [*events, {"id": 3}]))
    source = {"type": "file", "path": str(file), "format": "json", "finite": True, "schema": NESTED}
    key = {"mode": "upsert", "key": ["id"]}
    raw = pipeline(source=source, sinks=[base.spec(table="t", create="if_missing", **key)])
    state = run(spark, raw, tmp_path / "c", site=streams.site())
    assert state.outcome == "completed", state.error
    found = {row[0]: [_json(value) for value in row[1:]] for row in base.rows("SELECT * FROM t")}
    assert found[1] == found[2] == [["it's", None], {"city": "Köln", "zip": "1.50"}, {"a": 1}]
    assert found[3] == [None, None, None]
    base.run("CREATE TABLE small (id BIGINT, tags VARCHAR(5) CHECK (tags <> ''), CHECK (id < 2))")
    steps = [{"type": "sql", "query": "SELECT id, tags FROM input"}]
    raw = pipeline(source=source, processors=steps, sinks=[base.spec(table="small")])
    state = run(spark, raw, tmp_path / "c2", site=streams.site())
    assert state.outcome == "completed", state.error
    found_letters = {json.loads(letter["event"])["id"]: letter for letter in letters(streams)}
    assert set(found_letters) >= {2, 3}
    assert json.loads(found_letters[2]["event"])["tags"] == ["it's", None]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"mode": "upsert", "key": ["idd"]}, "unknown_column", "spec.sinks[0].key[0]"),
        ({"mode": "sync", "key": ["id"], "op": {"column": "o"}}, "unknown_column", "spec.sinks[0].op.column"),
        ({"mode": "sync", "key": ["id"], "op": {"column": "n"}}, "wrong_type", "spec.sinks[0].op.column"),
        ({"mode": "upsert", "key": ["list"]}, "wrong_type", "spec.sinks[0].key[0]"),
        ({}, "unsupported_type", "spec.sinks[0].table"),
        ({"mode": "upsert"}, "invalid_value", "spec.sinks[0]"),
        ({"key": ["id"]}, "invalid_value", "spec.sinks[0]"),
        ({"url": "mysq://x/y"}, "invalid_value", "spec.sinks[0]"),
        ({"table": "a.b.c"}, "invalid_value", "spec.sinks[0].table"),
    ],
)
def test_a_document_is_judged_without_the_database(
    fields: dict[str, Any], code: str, path: str, spark: SparkSession
) -> None:
    span = "INTERVAL 1 DAY" if code == "unsupported_type" else "1"
    row = {"id": "seq", "n": "seq", "list": "array(seq)", "span": span}
    sink = {"type": "sql", "url": "postgresql://nobody@127.0.0.1:9/x", "table": "t", **fields}
    raw = pipeline(source={"type": "generate", "row": row}, sinks=[sink])
    analysis = analyse(raw, *offline([raw]), spark=spark)
    assert [(problem.code, problem.path) for problem in analysis.errors] == [(code, path)]
