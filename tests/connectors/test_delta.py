"""The `delta` connectors: conformance, types, merges, concurrent writers and what a source can't read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.connectors.delta.sink import DeltaSink
from penstock.connectors.delta.source import DeltaSource
from penstock.errors import Invalid
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import COUNT, SOURCE, SinkSuite, SinkSystem
from penstock.testing.source_suite import SOME, Events, SourceSuite, SourceSystem
from tests import delta_log
from tests.s3_server import PASSWORD, REGION, S3, USER
from tests.streams.kit import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


class DeltaPlace(SourceSystem):
    lag = True

    def __init__(self, root: Path) -> None:
        self.root = root
        DeltaTable.create(str(root), COLUMNS)

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "delta", "path": str(self.root), "poll_ms": 100, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        size = 50
        for first in range(0, len(events), size):
            part = [dict(event) for event in events[first : first + size]]
            write_deltalake(str(self.root), pa.Table.from_pylist(part, COLUMNS), mode="append")

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        last = DeltaTable(str(self.root)).version() if self.root.exists() else 0
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "version": (f"version:{last - 1 if last == 6 else 5}", 100),
            "time": ("time:2000-01-01T00:00:00Z", len(SOME)),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "path": (self.spec(path=str(self.root / "nothing")), "table_not_found"),
            "version": (self.spec(position="version:999"), "unknown_version"),
        }


class TestDeltaSource(SourceSuite):
    @pytest.fixture
    def system(self, tmp_path: Path) -> DeltaPlace:
        return DeltaPlace(tmp_path / "table")


class DeltaTarget(SinkSystem):
    keyed = True

    def __init__(self, root: Path, path: str = "", options: Mapping[str, str] | None = None) -> None:
        self.root, self.path, self.options = root, path or str(root), dict(options or {})

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "delta", "path": self.path, "options": self.options, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return list(delta_log.rows(self.root)) if self.root.exists() else []

    def bad(self) -> tuple[dict[str, str], str]:
        required = pa.field("name", pa.string(), nullable=False)
        schema = pa.schema([("id", pa.int64()), required, ("_key", pa.string())])
        DeltaTable.create(self.path, schema, storage_options=self.options)
        return {"name": "IF(seq % 2 = 0, NULL, 'x')"}, "null_value"

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        file, other = self.root.with_name("file"), self.root.with_name("other")
        file.write_text("")
        if not other.exists():
            DeltaTable.create(str(other), pa.schema([("id", pa.string())]))
        return {
            "a file": (self.spec(path=str(file)), "not_a_directory"),
            "below a file": (self.spec(path=str(file / "table")), "path_unusable"),
            "missing": (self.spec(path=str(self.root / "nothing"), create="never"), "table_not_found"),
            "columns": (self.spec(path=str(other)), "wrong_type"),
            "partitions": (self.spec(path=str(other), partition_by=["id"]), "partitioning"),
            "no server": (
                self.spec(path="s3://bucket/table", options=s3_options(None)),
                "storage_failed",
            ),
        }


def s3_options(store: S3 | None) -> dict[str, str]:
    """The options of a server, or of an address where there is none."""
    return {
        "AWS_ENDPOINT_URL": store.url if store else "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": PASSWORD, "AWS_REGION": REGION,
        "max_retries": "1", "retry_timeout": "2s",
    }  # fmt: skip


class S3Target(DeltaTarget):
    """The same in an object store, which can be stopped."""

    outage_s = 60.0

    def __init__(self, store: S3) -> None:
        bucket = store.bucket()
        super().__init__(store.path(bucket) / "table", f"s3://{bucket}/table", s3_options(store))
        self.store = store

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        wrong = {**self.options, "AWS_SECRET_ACCESS_KEY": PASSWORD[:-1]}
        return {"login": (self.spec(options=wrong), "storage_failed")}

    def stop(self) -> None:
        self.store.kill()

    def start(self) -> None:
        self.store.start()


class TestDeltaSink(SinkSuite):
    @pytest.fixture(params=["directory", "object store"] if NIGHTLY else ["directory"])
    def system(self, request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTarget:
        if request.param == "directory":
            return DeltaTarget(tmp_path / "table")
        return S3Target(request.getfixturevalue("object_store"))


TYPES = {
    "id": "seq",
    "tiny": "CAST(seq AS TINYINT)",
    "small": "CAST(seq AS SMALLINT)",
    "number": "CAST(seq AS INT)",
    "yes": "seq % 2 = 0",
    "float": "CAST(0.1 AS FLOAT)",
    "double": "CAST(0.1 AS DOUBLE)",
    "amount": "CAST(123456789012345678.91 AS DECIMAL(20, 2))",
    "text": "concat('ü', seq)",
    "bytes": "CAST('ab' AS BINARY)",
    "day": "DATE'1582-10-01'",
    "at": "TIMESTAMP'2026-01-31 12:00:00.123456Z'",
    "local": "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    "list": "array(1, NULL)",
    "map": "map('a', 1)",
    "struct": "named_struct('a', 1, 'b', array('x'))",
    "nothing": "CAST(NULL AS STRING)",
}
VALUES = {
    "tiny": 1, "small": 1, "number": 1, "yes": False, "double": 0.1,
    "amount": Decimal("123456789012345678.91"), "text": "ü1", "bytes": b"ab", "day": date(1582, 10, 1),
    "at": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
    "local": datetime(1969, 12, 31, 23, 59, 59, 999999), "list": [1, None], "map": [("a", 1)],
    "struct": {"a": 1, "b": ["x"]}, "nothing": None,
}  # fmt: skip


def test_values_come_back_as_they_were(bench: Bench, tmp_path: Path) -> None:
    """Through the sink, read by the log, and through the source again."""
    table, out = tmp_path / "table", tmp_path / "out"
    source = {"type": "generate", "count": 4, "row": TYPES}
    state = bench.run(source, {"type": "delta", "path": str(table), "partition_by": ["text", "yes"]})
    assert state.outcome == "completed", state.error
    (row,) = [row for row in delta_log.rows(table) if row["id"] == 1]
    assert {name: row[name] for name in VALUES} == {**VALUES, "text": "ü1", "yes": "false"}
    back = bench.part("back")
    sink = {"type": "file", "path": str(out), "format": "json"}
    state = back.run({"type": "delta", "path": str(table), "finite": True}, sink)
    assert state.outcome == "completed", state.error
    (event,) = [event for event in files(out) if event["id"] == 1]
    assert event["at"] == "2026-01-31T12:00:00.123456Z"
    assert event["local"] == "1969-12-31T23:59:59.999999"
    assert (event["day"], event["text"], event["yes"]) == ("1582-10-01", "ü1", False)
    assert event["amount"] == "123456789012345678.91"
    assert (event["list"], event["map"], event["struct"]) == ([1, None], {"a": 1}, {"a": 1, "b": ["x"]})


def test_a_merge_keeps_the_last_event_of_each_key(bench: Bench, tmp_path: Path) -> None:
    """1,000 events over ten keys in four batches: updates, inserts and deletes."""
    table = tmp_path / "table"
    row = {
        "Id": "seq % 10",
        "count": "seq",
        "op": "CASE WHEN seq >= 900 AND seq % 10 < 3 THEN 'd' WHEN seq % 2 = 0 THEN 'u' END",
    }
    sink = {"type": "delta", "path": str(table), "mode": "merge", "key": ["Id"]}
    sink["op"] = {"column": "op", "delete": ["d", "D"]}
    state = bench.run(
        {"type": "generate", "count": COUNT, "row": row}, sink, batch={"max_events": 250, "max_inflight": 1}
    )
    assert state.outcome == "completed", state.error
    found = sorted((row["Id"], row["count"]) for row in delta_log.rows(table))
    assert found == [(key, 990 + key) for key in range(3, 10)]
    assert [number for _, number in delta_log.transactions(table)] == [0, 1, 2, 3]
    assert "op" not in delta_log.rows(table)[0]


def test_a_merge_leaves_other_columns_and_rejects_events_without_a_key(bench: Bench, tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(str(table), pa.table({"id": [0, 1], "name": ["a", "b"], "other": ["x", "y"]}))
    row = {"id": "IF(seq = 2, NULL, seq + 1)", "name": "concat('new ', seq)", "extra": "seq"}
    sink = {"type": "delta", "path": str(table), "mode": "merge", "key": ["id"], "create": "evolve"}
    state = bench.run({"type": "generate", "count": 3, "row": row}, sink)
    assert state.outcome == "completed", state.error
    found = sorted(delta_log.rows(table), key=lambda row: row["id"])
    assert [(r["id"], r["name"], r.get("other"), r.get("extra")) for r in found] == [
        (0, "a", "x", None),
        (1, "new 0", "y", 0),
        (2, "new 1", None, 1),
    ]
    (letter,) = bench.letters()
    assert (letter["code"], json.loads(letter["event"])["name"]) == ("null_key", "new 2")


def test_columns_are_added_only_if_they_may_be(bench: Bench, tmp_path: Path) -> None:
    table = tmp_path / "table"
    required = pa.field("id", pa.int64(), nullable=False)
    DeltaTable.create(str(table), pa.schema([required, ("other", pa.string())]))
    source = {**SOURCE, "count": 5}
    state = bench.run(source, {"type": "delta", "path": str(table)}, restart={"policy": "never"})
    assert (state.error or {})["code"] == "extra_column"
    state = bench.part("evolve").run(source, {"type": "delta", "path": str(table), "create": "evolve"})
    assert state.outcome == "completed", state.error
    schema = pa.schema(DeltaTable(str(table)).schema().to_arrow())
    assert schema.names == ["id", "other", "name", "_key"]
    assert not schema.field("id").nullable, "an added column must not make others nullable"
    assert {row["id"] for row in delta_log.rows(table)} == set(range(5))


def test_a_batch_of_a_fenced_process_is_not_committed_twice(tmp_path: Path, spark: SparkSession) -> None:
    """Two processes with the same batch: neither knows of the other's commit before its own."""
    from penstock.connectors.delta.sink import _Writer
    from penstock.errors import Unavailable

    events = pa.table({"id": [1, 2]})
    sink = DeltaSink(path=str(tmp_path / "table"))
    writers = [_Writer(sink), _Writer(sink)]
    writers[0].deliver(events, "owner", 0)
    writers[1].deliver(events, "owner", 0)
    assert len(delta_log.rows(tmp_path / "table")) == 2

    def overtaken() -> None:
        writers[0].deliver(events, "owner", 1)

    writers[1].permitted = overtaken  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="Concurrent"):
        writers[1].deliver(events, "owner", 1)
    writers[1].deliver(events, "owner", 1)
    assert len(delta_log.rows(tmp_path / "table")) == 4
    writers[1].deliver(events, "another owner", 1)
    assert len(delta_log.rows(tmp_path / "table")) == 6


def test_a_batch_is_recognized_when_its_commit_has_left_the_log(tmp_path: Path) -> None:
    """A checkpoint of the table keeps the numbers of batches."""
    from penstock.connectors.delta.sink import _Writer

    table = tmp_path / "table"
    for batch in range(3):
        _Writer(DeltaSink(path=str(table))).deliver(pa.table({"id": [batch]}), "owner", batch)
    DeltaTable(str(table)).create_checkpoint()
    for log in (table / "_delta_log").glob("*.json"):
        log.unlink()
    _Writer(DeltaSink(path=str(table))).deliver(pa.table({"id": [2]}), "owner", 2)
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 3


def test_a_process_that_must_not_write_commits_nothing(tmp_path: Path) -> None:
    from penstock.connectors.delta.sink import _Writer
    from penstock.errors import Suspended

    def refused() -> None:
        raise Suspended("no lease")

    for sink in (
        DeltaSink(path=str(tmp_path / "append")),
        DeltaSink(path=str(tmp_path / "merge"), mode="merge", key=["id"]),
    ):
        writer = _Writer(sink)
        writer.deliver(pa.table({"id": [1]}), "owner", 0)
        writer.permitted = refused  # type: ignore[method-assign]
        with pytest.raises(Suspended):
            writer.deliver(pa.table({"id": [2]}), "owner", 1)
        assert [row["id"] for row in delta_log.rows(Path(sink.path))] == [1]


def test_a_change_fails_the_source_or_is_skipped(bench: Bench, tmp_path: Path) -> None:
    table, out = tmp_path / "table", tmp_path / "out"
    place = DeltaPlace(table)
    place.put(SOME[:100])
    DeltaTable(str(table)).delete("id = 5")
    place.put(SOME[100:150])
    spec = place.spec(position="version:0", finite=True)
    state = bench.run(spec, {"type": "drop"}, restart={"policy": "never"})
    assert (state.error or {})["code"] == "changed"
    assert (state.error or {})["path"] == "spec.source.changes"
    state = bench.part("skip").run({**spec, "changes": "skip"}, to_files(out))
    assert state.outcome == "completed", state.error
    assert len(files(out)) == 150
    DeltaTable(str(table)).optimize.compact()
    state = bench.part("whole").run(place.spec(finite=True), to_files(tmp_path / "whole"))
    assert state.outcome == "completed", state.error
    assert len(files(tmp_path / "whole")) == 149


def test_compaction_is_no_change_and_a_removed_log_is_a_gap(bench: Bench, tmp_path: Path) -> None:
    table, out = tmp_path / "table", tmp_path / "out"
    place = DeltaPlace(table)
    place.put(SOME[:100])
    with bench.running(place.spec(), to_files(out)):
        wait_until("the first events", lambda: len(files(out)) == 100)
        DeltaTable(str(table)).optimize.compact()
        place.put(SOME[100:150])
        wait_until("the later events", lambda: len(files(out)) == 150)
    assert sorted(event["id"] for event in files(out)) == list(range(150))
    place.put(SOME[150:])
    DeltaTable(str(table)).create_checkpoint()
    last = DeltaTable(str(table)).version()
    os.unlink(table / "_delta_log" / f"{last - 1:020d}.json")
    error = bench.run(place.spec(finite=True), to_files(out), restart={"policy": "never"}).error or {}
    assert (error["code"], error["path"]) == ("gap", "spec.source.position")


def test_partition_values_and_paths(bench: Bench, tmp_path: Path) -> None:
    """Values with spaces, slashes and signs, of a commit and of the whole table."""
    table = tmp_path / "table"
    at = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    values = {"id": [1, 2], "p": ["a b/%ü=", None], "d": [date(2026, 1, 31)] * 2, "at": [at] * 2}
    schema = pa.schema(
        [("id", pa.int64()), ("p", pa.string()), ("d", pa.date32()), ("at", pa.timestamp("us", "UTC"))]
    )
    write_deltalake(str(table), pa.table(values, schema), partition_by=["p", "d", "at"])
    for position in ("earliest", "version:0"):
        out = tmp_path / position.replace(":", "")
        spec = {"type": "delta", "path": str(table), "position": position, "finite": True}
        state = bench.part(position.replace(":", "")).run(spec, to_files(out))
        assert state.outcome == "completed", state.error
        found = sorted(files(out), key=lambda event: event["id"])
        assert [event["p"] for event in found] == ["a b/%ü=", None]
        assert {(event["d"], event["at"]) for event in found} == {
            ("2026-01-31", "2026-01-31T12:00:00.123456Z")
        }


def test_reads_from_an_object_store_that_goes_away(bench: Bench, object_store: S3, tmp_path: Path) -> None:
    options, path = s3_options(object_store), f"s3://{object_store.bucket()}/table"
    rows = pa.Table.from_pylist([dict(event) for event in SOME], COLUMNS)

    def put(first: int, end: int) -> None:
        part = rows.slice(first, end - first)
        write_deltalake(path, part, mode="append", storage_options=options)

    put(0, 100)
    out, restart = tmp_path / "out", {"max_attempts": 100, "backoff_ms": 200, "max_backoff_ms": 1000}
    spec = {"type": "delta", "path": path, "options": options, "poll_ms": 100}
    with bench.running(spec, to_files(out), restart=restart) as kept:
        wait_until("the events before", lambda: len(files(out)) >= 100)
        object_store.kill()
        try:
            wait_until("the failure", lambda: kept.state.error is not None)
            error = kept.state.error or {}
        finally:
            object_store.start()
        put(100, len(SOME))
        wait_until("the events after", lambda: len(files(out)) >= len(SOME))
    assert sorted(event["id"] for event in files(out)) == list(range(len(SOME)))
    assert (error["code"], error["path"]) == ("table_unavailable", "spec.source.path"), error
    assert PASSWORD not in str(error)


def test_probes(spark: SparkSession, bench: Bench, tmp_path: Path) -> None:
    table = tmp_path / "table"
    source, sink = DeltaSource(path=str(table)), DeltaSink(path=str(table), create="never")
    for each in (source, sink):
        (problem,) = each.probe(spark, bench.site).problems
        assert problem.code == "table_not_found"
    assert not DeltaSink(path=str(table)).probe(spark, bench.site).problems
    assert not table.exists()
    write_deltalake(str(table), pa.table({"id": [1, 2]}))
    found = source.probe(spark, bench.site)
    assert (found.problems, found.offers) == ([], {"columns": ["id int64"]})
    assert found.sample == [{"id": 1}, {"id": 2}]
    away = DeltaSource(path="s3://bucket/t", options=s3_options(None))
    (problem,) = away.probe(spark, bench.site).problems
    assert problem.code == "storage_failed"
    assert PASSWORD not in str(problem)


def test_fields_that_do_not_go_together() -> None:
    for fields in (
        {"mode": "merge"},
        {"key": ["id"]},
        {"op": {"column": "op", "delete": ["d"]}},
        {"mode": "merge", "key": ["id"], "op": {"column": "id", "delete": ["d"]}},
    ):
        with pytest.raises(ValueError, match=r"'key'|'op'"):
            DeltaSink(path="t", **fields)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="version:N"):
        DeltaSource(path="t", position="offset:3")


def test_checks(spark: SparkSession, bench: Bench) -> None:
    schema = spark.sql("SELECT 1 AS `a b`, INTERVAL '1' DAY AS late, 1 AS id, 0.5D AS part").schema
    sink = DeltaSink(path="t", mode="merge", key=["idd"], partition_by=["part"])
    found = {(problem.code, problem.path) for problem in sink.check(schema, bench.site)}
    assert found == {
        ("unknown_column", "key[0]"),
        ("unsupported_type", "partition_by[0]"),
        ("column_name", None),
        ("unsupported_type", None),
    }


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(Invalid, match=r"pip install 'penstock\[delta\]'"):
        DeltaSource(path="t").table_columns()
