"""The `iceberg` connectors: conformance, types, merges, concurrent writers and what a source can't read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from penstock.connectors.iceberg.catalog import CatalogSpec
from penstock.connectors.iceberg.log import IcebergCommits
from penstock.connectors.iceberg.sink import DELIVERY, IcebergSink, _Writer
from penstock.connectors.iceberg.source import IcebergSource
from penstock.errors import Invalid, Suspended
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import COUNT, SOURCE, SinkSuite, SinkSystem
from penstock.testing.source_suite import SOME, Events, SourceSuite, SourceSystem
from tests import iceberg_files
from tests.iceberg_server import RestCatalog
from tests.s3_server import PASSWORD, REGION, S3, USER
from tests.streams.kit import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
TABLE = "sales.orders"


class Lake:
    """A catalog in SQLite, and its tables in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "files").mkdir(parents=True)
        self.database = root / "catalog.db"

    @property
    def spec(self) -> dict[str, Any]:
        return {
            "type": "sql", "name": "lake", "uri": f"sqlite:///{self.database}", "warehouse": f"file://{self.root}/files",
        }  # fmt: skip

    def catalog(self) -> Catalog:
        found = load_catalog(**self.spec)
        found.create_namespace_if_not_exists("sales")
        return found

    def rows(self) -> list[dict[str, Any]]:
        return iceberg_files.rows(self.database, TABLE) if self.database.exists() else []

    def sink(self, **fields: Any) -> dict[str, Any]:
        return {"type": "iceberg", "catalog": self.spec, "table": TABLE, **fields}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


class IcebergPlace(SourceSystem):
    lag = True

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        lake.catalog().create_table(TABLE, COLUMNS)

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "iceberg", "catalog": self.lake.spec, "table": TABLE, "poll_ms": 100, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        table, size = self.lake.catalog().load_table(TABLE), 50
        for first in range(0, len(events), size):
            part = [dict(event) for event in events[first : first + size]]
            table.append(pa.Table.from_pylist(part, COLUMNS))

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        snapshots = self.lake.catalog().load_table(TABLE).snapshots()
        fifth = snapshots[4].snapshot_id if len(snapshots) > 4 else 0
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "version": (f"version:{fifth}", 100),
            "time": ("time:2000-01-01T00:00:00Z", len(SOME)),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        nowhere = {"type": "sql", "uri": "sqlite:////no/such/directory/catalog.db"}
        return {
            "table": (self.spec(table="sales.order"), "table_not_found"),
            "snapshot": (self.spec(position="version:999"), "unknown_version"),
            "catalog": (self.spec(catalog=nowhere), "catalog_failed"),
        }


class TestIcebergSource(SourceSuite):
    @pytest.fixture
    def system(self, lake: Lake) -> IcebergPlace:
        return IcebergPlace(lake)


class IcebergTarget(SinkSystem):
    keyed = True

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def spec(self, **fields: Any) -> dict[str, Any]:
        return self.lake.sink(**fields)

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return list(self.lake.rows())

    def bad(self) -> tuple[dict[str, str], str]:
        required = pa.field("name", pa.string(), nullable=False)
        schema = pa.schema([("id", pa.int64()), required, ("_key", pa.string())])
        self.lake.catalog().create_table(TABLE, schema)
        return {"name": "IF(seq % 2 = 0, NULL, 'x')"}, "null_value"

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        catalog = self.lake.catalog()
        if not catalog.table_exists("sales.other"):
            catalog.create_table("sales.other", pa.schema([("id", pa.string())]))
        server = {"type": "rest", "uri": "http://127.0.0.1:9"}
        return {
            "missing": (self.spec(create="never"), "table_not_found"),
            "columns": (self.spec(table="sales.other"), "wrong_type"),
            "partitions": (self.spec(table="sales.other", partition_by=["id"]), "partitioning"),
            "no server": (self.spec(catalog=server), "catalog_failed"),
        }


class RestTarget(SinkSystem):
    """A table in a catalog with a server, which can be stopped."""

    keyed = True
    outage_s = 60.0

    def __init__(self, catalog: RestCatalog) -> None:
        self.catalog, self.table = catalog, f"sales.t{uuid.uuid4().hex[:12]}"

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "iceberg", "catalog": self.catalog.spec, "table": self.table, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return list(iceberg_files.rows(self.catalog.database, self.table))

    def stop(self) -> None:
        self.catalog.kill()

    def start(self) -> None:
        self.catalog.start()


class TestIcebergSink(SinkSuite):
    @pytest.fixture(params=["sql", "rest"] if NIGHTLY else ["sql"])
    def system(self, request: pytest.FixtureRequest, lake: Lake) -> SinkSystem:
        if request.param == "sql":
            return IcebergTarget(lake)
        return RestTarget(request.getfixturevalue("iceberg_catalog"))


def test_a_rest_catalog_is_read_and_merged(
    bench: Bench, iceberg_catalog: RestCatalog, tmp_path: Path
) -> None:
    target = RestTarget(iceberg_catalog)
    merge = {"mode": "merge", "key": ["id"], "partition_by": ["kind"]}
    writers = [_Writer(IcebergSink(**target.spec(**merge))) for _ in range(2)]
    rows = pa.table({"id": [1, 2, 3], "kind": ["x", "x", "y"], "v": [0, 0, 0]})
    for writer in writers:
        writer.deliver(rows, "owner", 0)
    writers[1].deliver(pa.table({"id": [2], "kind": ["x"], "v": [1]}), "owner", 1)
    found = iceberg_files.rows(iceberg_catalog.database, target.table)
    assert sorted((row["id"], row["v"]) for row in found) == [(1, 0), (2, 1), (3, 0)]
    read = target.spec(finite=True)
    state = bench.run(read, to_files(tmp_path / "out"))
    assert state.outcome == "completed", state.error
    assert sorted((event["id"], event["v"]) for event in files(tmp_path / "out")) == [(1, 0), (2, 1), (3, 0)]


TYPES = {
    "id": "seq",
    "tiny": "CAST(seq AS TINYINT)",
    "small": "CAST(seq AS SMALLINT)",
    "number": "CAST(seq AS INT)",
    "yes": "seq % 2 = 0",
    "double": "CAST(0.1 AS DOUBLE)",
    "amount": "CAST(123456789012345678.91 AS DECIMAL(20, 2))",
    "text": "concat('ü', seq)",
    "bytes": "CAST('ab' AS BINARY)",
    "day": "DATE'1582-10-01'",
    "at": "TIMESTAMP'2026-01-31 12:00:00.123456Z'",
    "local": "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    "list": "array(1, NULL)",
    "map": "map('a', 1)",
    "struct": "named_struct('a', CAST(1 AS SMALLINT), 'b', array('x'))",
    "nothing": "CAST(NULL AS STRING)",
}
VALUES = {
    "tiny": 1, "small": 1, "number": 1, "yes": False, "double": 0.1,
    "amount": Decimal("123456789012345678.91"), "text": "ü1", "bytes": b"ab", "day": date(1582, 10, 1),
    "at": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
    "local": datetime(1969, 12, 31, 23, 59, 59, 999999), "list": [1, None], "map": [("a", 1)],
    "struct": {"a": 1, "b": ["x"]}, "nothing": None,
}  # fmt: skip


def test_values_come_back_as_they_were(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """Through the sink, read by the metadata, and through the source again; in two batches."""
    out, small = tmp_path / "out", {"max_events": 2, "max_inflight": 1}
    source = {"type": "generate", "count": 4, "row": TYPES}
    state = bench.run(source, lake.sink(partition_by=["text", "yes"]), batch=small)
    assert state.outcome == "completed", state.error
    (row,) = [row for row in lake.rows() if row["id"] == 1]
    assert {name: row[name] for name in VALUES} == VALUES
    read = {"type": "iceberg", "catalog": lake.spec, "table": TABLE, "finite": True}
    state = bench.part("back").run(read, to_files(out))
    assert state.outcome == "completed", state.error
    assert sorted(event["id"] for event in files(out)) == [0, 1, 2, 3]
    (event,) = [event for event in files(out) if event["id"] == 1]
    assert event["at"] == "2026-01-31T12:00:00.123456Z"
    assert event["local"] == "1969-12-31T23:59:59.999999"
    assert (event["day"], event["text"], event["yes"]) == ("1582-10-01", "ü1", False)
    assert event["amount"] == "123456789012345678.91"
    assert (event["list"], event["map"], event["struct"]) == ([1, None], {"a": 1}, {"a": 1, "b": ["x"]})


def test_a_merge_keeps_the_last_event_of_each_key(bench: Bench, lake: Lake) -> None:
    """1,000 events over ten keys of two columns, in four batches: updates, inserts and deletes."""
    row = {
        "Id": "seq % 10",
        "half": "concat('h', seq % 2)",
        "count": "seq",
        "op": "CASE WHEN seq >= 900 AND seq % 10 < 3 THEN 'd' WHEN seq % 2 = 0 THEN 'u' END",
    }
    sink = lake.sink(mode="merge", key=["Id", "half"], op={"column": "op", "delete": ["d", "D"]})
    state = bench.run(
        {"type": "generate", "count": COUNT, "row": row}, sink, batch={"max_events": 250, "max_inflight": 1}
    )
    assert state.outcome == "completed", state.error
    found = sorted((row["Id"], row["half"], row["count"]) for row in lake.rows())
    assert found == [(key, f"h{key % 2}", 990 + key) for key in range(3, 10)]
    assert "op" not in lake.rows()[0]


def test_a_merge_leaves_other_columns_and_rejects_events_without_a_key(bench: Bench, lake: Lake) -> None:
    rows = pa.table({"id": [0, 1], "kind": ["x", "x"], "name": ["a", "b"], "other": [["x"], ["y"]]})
    lake.catalog().create_table(TABLE, rows.schema).append(rows)
    row = {"id": "IF(seq = 2, NULL, seq + 1)", "kind": "'x'", "name": "concat('new ', seq)", "extra": "seq"}
    state = bench.run(
        {"type": "generate", "count": 3, "row": row},
        lake.sink(mode="merge", key=["id", "kind"], create="evolve"),
    )
    assert state.outcome == "completed", state.error
    found = sorted(lake.rows(), key=lambda row: row["id"])
    assert [(r["id"], r["name"], r.get("other"), r.get("extra")) for r in found] == [
        (0, "a", ["x"], None),
        (1, "new 0", ["y"], 0),
        (2, "new 1", None, 1),
    ]
    (letter,) = bench.letters()
    assert (letter["code"], json.loads(letter["event"])["name"]) == ("null_key", "new 2")


def test_rows_with_other_keys_stay_where_keys_have_several_columns(lake: Lake) -> None:
    """(1, a) and (2, b) change: (1, b) and (2, a) have values of both columns, and stay."""
    sink = IcebergSink(**lake.sink(mode="merge", key=["x", "y"]))
    writer = _Writer(sink)
    all_ = [{"x": x, "y": y, "v": 0} for x in (1, 2, 3) for y in "abc"]
    writer.deliver(pa.Table.from_pylist(all_), "owner", 0)
    changed = [{"x": 1, "y": "a", "v": 1}, {"x": 2, "y": "b", "v": 1}]
    writer.deliver(pa.Table.from_pylist(changed), "owner", 1)
    found = {(row["x"], row["y"]): row["v"] for row in lake.rows()}
    assert found == {(x, y): int((x, y) in ((1, "a"), (2, "b"))) for x in (1, 2, 3) for y in "abc"}
    assert len(lake.rows()) == 9


def test_columns_are_added_only_if_they_may_be(bench: Bench, lake: Lake) -> None:
    required = pa.field("id", pa.int64(), nullable=False)
    lake.catalog().create_table(TABLE, pa.schema([required, ("other", pa.string())]))
    source = {**SOURCE, "count": 5}
    state = bench.run(source, lake.sink(), restart={"policy": "never"})
    assert (state.error or {})["code"] == "extra_column"
    state = bench.part("evolve").run(source, lake.sink(create="evolve"))
    assert state.outcome == "completed", state.error
    schema = lake.catalog().load_table(TABLE).schema()
    assert schema.column_names == ["id", "other", "name", "_key"]
    assert schema.find_field("id").required
    assert {row["id"] for row in lake.rows()} == set(range(5))


def test_a_batch_of_a_fenced_process_is_not_committed_twice(lake: Lake) -> None:
    """Two processes with the same batch: neither knows of the other's commit before its own."""
    events = pa.table({"id": [1, 2]})
    for name, mode in {"append": {}, "merge": {"mode": "merge", "key": ["id"]}}.items():
        sink = IcebergSink(**lake.sink(**mode) | {"table": f"sales.{name}"})
        writers = [_Writer(sink), _Writer(sink)]
        for writer in writers:
            writer.deliver(events, "owner", 0)
        overtaken = [1]

        def overtake(writer: _Writer = writers[0], overtaken: list[int] = overtaken) -> None:
            if overtaken:
                writer.deliver(events, "owner", overtaken.pop())

        writers[1].permitted = overtake  # type: ignore[method-assign]
        writers[1].deliver(events, "owner", 1)
        assert not overtaken
        found = iceberg_files.rows(lake.database, f"sales.{name}")
        assert len(found) == (4 if name == "append" else 2)
    numbers = [
        snapshot["summary"][DELIVERY]
        for snapshot in iceberg_files.metadata(lake.database, "sales.append")["snapshots"]
    ]
    assert numbers == ["owner/0", "owner/1"]


def test_a_commit_of_another_writer_is_no_obstacle(lake: Lake) -> None:
    writer = _Writer(IcebergSink(**lake.sink()))
    writer.deliver(pa.table({"id": [1]}), "owner", 0)
    others = [pa.table({"id": [2]})]

    def other() -> None:
        if others:
            lake.catalog().load_table(TABLE).append(others.pop())

    writer.permitted = other  # type: ignore[method-assign]
    writer.deliver(pa.table({"id": [3]}), "owner", 1)
    assert sorted(row["id"] for row in lake.rows()) == [1, 2, 3]


def test_a_process_that_must_not_write_commits_nothing(lake: Lake) -> None:
    def refused() -> None:
        raise Suspended("no lease")

    for name, mode in {"append": {}, "merge": {"mode": "merge", "key": ["id"]}}.items():
        writer = _Writer(IcebergSink(**lake.sink(**mode) | {"table": f"sales.{name}"}))
        writer.deliver(pa.table({"id": [1]}), "owner", 0)
        writer.permitted = refused  # type: ignore[method-assign]
        with pytest.raises(Suspended):
            writer.deliver(pa.table({"id": [2]}), "owner", 1)
        assert [row["id"] for row in iceberg_files.rows(lake.database, f"sales.{name}")] == [1]


def test_a_change_fails_the_source_or_is_skipped(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    place = IcebergPlace(lake)
    place.put(SOME[:100])
    table = lake.catalog().load_table(TABLE)
    first = table.snapshots()[0].snapshot_id
    table.delete("id = 5")
    place.put(SOME[100:150])
    spec = place.spec(position=f"version:{first}", finite=True)
    state = bench.run(spec, {"type": "drop"}, restart={"policy": "never"})
    assert (state.error or {})["code"] == "changed"
    assert (state.error or {})["path"] == "spec.source.changes"
    state = bench.part("skip").run({**spec, "changes": "skip"}, to_files(tmp_path / "out"))
    assert state.outcome == "completed", state.error
    assert len(files(tmp_path / "out")) == 150
    state = bench.part("whole").run(place.spec(finite=True), to_files(tmp_path / "whole"))
    assert state.outcome == "completed", state.error
    assert len(files(tmp_path / "whole")) == 149


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_table_is_read_in_the_order_of_its_commits(lake: Lake, version: str) -> None:
    """By the names of files, which are random, events of later commits would make earlier ones late."""
    made = lake.catalog().create_table(TABLE, COLUMNS, properties={"format-version": version})
    for number in range(12):
        made.append(pa.table({"id": [number], "name": [str(number)]}, COLUMNS))
    commits = IcebergCommits(lake.spec, TABLE, "fail")
    newest = commits.newest()
    assert newest is not None
    read = [pq.read_table(file.path).column("id")[0].as_py() for file in commits.files(newest)]
    assert read == list(range(12))


def test_an_expired_snapshot_is_a_gap(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    place, out = IcebergPlace(lake), tmp_path / "out"
    place.put(SOME[:100])
    with bench.running(place.spec(), to_files(out)):
        wait_until("the first events", lambda: len(files(out)) == 100)
    place.put(SOME[100:])
    table = lake.catalog().load_table(TABLE)
    table.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in table.snapshots()[:-1]]).commit()
    error = bench.run(place.spec(finite=True), to_files(out), restart={"policy": "never"}).error or {}
    assert (error["code"], error["path"]) == ("gap", "spec.source.position")


def test_probes(spark: SparkSession, bench: Bench, lake: Lake) -> None:
    lake.catalog()
    source, sink = IcebergSource(**lake.sink()), IcebergSink(**lake.sink(create="never"))
    for each in (source, sink):
        (problem,) = each.probe(spark, bench.site).problems
        assert problem.code == "table_not_found"
    assert not IcebergSink(**lake.sink()).probe(spark, bench.site).problems
    lake.catalog().create_table(TABLE, COLUMNS).append(pa.table({"id": [1], "name": ["x"]}))
    found = source.probe(spark, bench.site)
    assert found.problems == []
    assert found.offers == {"tables": [TABLE], "columns": ["id int64", "name string"]}
    assert found.sample == [{"id": 1, "name": "x"}]
    near = IcebergSource(**lake.sink() | {"table": "sales.order"})
    (problem,) = near.probe(spark, bench.site).problems
    assert problem.hint == f"did you mean '{TABLE}'?"
    secret = "postgresql+psycopg://me:not-to-be-shown@127.0.0.1:9/lake"
    for spec, code in (
        (CatalogSpec(type="rest", uri="http://127.0.0.1:9"), "unreachable"),
        (CatalogSpec(type="sql", uri=secret), "catalog_failed"),
    ):
        away = IcebergSource(catalog=spec, table=TABLE)
        (problem,) = away.probe(spark, bench.site).problems
        assert problem.code == code
        assert "not-to-be-shown" not in str(problem)
        assert "not-to-be-shown" not in str(away.position_of(bench.site))


def test_tables_in_an_object_store(bench: Bench, lake: Lake, object_store: S3, tmp_path: Path) -> None:
    options = {
        "s3.endpoint": object_store.url, "s3.access-key-id": USER, "s3.secret-access-key": PASSWORD,
        "s3.region": REGION,
    }  # fmt: skip
    catalog = {**lake.spec, "warehouse": f"s3://{object_store.bucket()}/lake", "options": options}
    state = bench.run(SOURCE, lake.sink(catalog=catalog), batch={"max_events": 250, "max_inflight": 1})
    assert state.outcome == "completed", state.error
    read = {"type": "iceberg", "catalog": catalog, "table": TABLE, "finite": True}
    state = bench.part("back").run(read, to_files(tmp_path / "out"))
    assert state.outcome == "completed", state.error
    assert sorted(event["id"] for event in files(tmp_path / "out")) == list(range(COUNT))


def test_a_table_has_a_namespace() -> None:
    with pytest.raises(ValueError, match=r"namespace\.table"):
        IcebergSource(catalog=CatalogSpec(type="sql", uri="sqlite://"), table="orders")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(Invalid, match=r"pip install 'penstock\[iceberg\]'"):
        IcebergSink(**lake.sink()).connected()
