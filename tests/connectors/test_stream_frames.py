"""Events as Java reads them out of a log, beside the same events as Python reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.engine.plan.python_steps import Limits, gathered, regrouped
from penstock.frames.hidden import EVENT
from penstock.frames.streams.batches import Batch
from penstock.frames.streams.reader import TASK_BYTES, grouped
from penstock.frames.streams.table import read_range
from penstock.streams.events import META, RAW, conform, stored_schema
from penstock.streams.log import Log
from tests.connectors.test_file_lossless import FLAT, NESTED, tables
from tests.flows import Streams
from tests.streams.kit import cluster_of

several = settings(
    max_examples=30 if os.environ.get("PENSTOCK_TEST_NIGHTLY") else 3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def by_java(spark: SparkSession, streams: Streams, first: int, end: int) -> list[dict[str, Any]]:
    return rows(read_range(spark, streams.place("s"), first, end).toArrow())


def by_python(log: Log, ddl: str | None, first: int, end: int) -> list[dict[str, Any]]:
    """What Python reads, in the columns that Spark has."""
    schema = stored_schema(ddl)
    found = []
    for chunk in log.read(first, end):
        if chunk.batch is None:
            continue
        table = pa.Table.from_batches([conform(chunk.batch, schema)])
        offsets = pa.array(range(chunk.base, chunk.next), pa.int64())
        times = pa.repeat(pa.scalar(chunk.time_us, pa.int64()), table.num_rows).cast(
            pa.timestamp("us", "UTC")
        )
        found += rows(table.append_column("_offset", offsets).append_column("_time", times))
    return found


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with comparable values: NaN equals itself, text and bytes are bytes, maps have no order."""
    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["local", "sqlite", "kafka"])
@pytest.mark.parametrize("ddl", [FLAT, NESTED], ids=["flat", "nested"])
def test_every_type_is_read_as_it_was_written(
    spark: SparkSession, tmp_path: Path, ddl: str, storage: str, request: pytest.FixtureRequest
) -> None:
    kafka = cluster_of(request.getfixturevalue("broker").address) if storage == "kafka" else None

    @several
    @given(
        table=tables(ddl),
        compression=st.sampled_from(["none", "lz4", "zstd"]),
        frame=st.integers(1, 40),
        cut=st.tuples(st.integers(0, 10), st.integers(0, 10)),
    )
    def check(table: pa.Table, compression: str, frame: int, cut: tuple[int, int]) -> None:
        streams = Streams(tmp_path, kafka)
        streams.life = os.urandom(8).hex()
        log = streams.make("s", schema=ddl, storage=storage, wal={"compression": compression})
        for batch in table.to_batches(max_chunksize=frame):
            log.append(batch)
        first, end = cut[0], table.num_rows - cut[1]
        assert by_java(spark, streams, first, end) == by_python(log, ddl, first, end)

    check()


def test_raw_events_keep_their_bytes_keys_and_headers(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("s")
    plain_event = pa.record_batch([pa.array([b"a", b"\xff\x00", None, b""])], schema=RAW)
    whole = pa.record_batch(
        [
            pa.array([b"x", b"y"]),
            pa.array([b"\xc3\x28", None]),
            pa.array([[("a", "1"), ("b", "2")], None], META.field("_headers").type),
        ],
        schema=pa.schema([*RAW, *META]),
    )
    for batch in (plain_event, whole, plain_event):
        log.append(batch)
    read = read_range(spark, streams.place("s"), 1, 9)
    found = read.selectExpr(
        "hex(cast(value AS BINARY))", "hex(cast(key AS BINARY))", "headers['b']", "_offset"
    )
    assert [tuple(row) for row in found.collect()] == [
        ("FF00", None, None, 1),
        (None, None, None, 2),
        ("", None, None, 3),
        ("78", "C328", "2", 4),
        ("79", None, None, 5),
        ("61", None, None, 6),
        ("FF00", None, None, 7),
        (None, None, None, 8),
    ]


OLD = "n TINYINT, i INT, f FLOAT, p DECIMAL(9,2), t STRING, day DATE, s STRUCT<a: INT>, l ARRAY<INT>, key INT"
NEW = (
    "n BIGINT, i DECIMAL(20,3), f DOUBLE, p DECIMAL(30,4), t BINARY, day TIMESTAMP_NTZ, "
    "s STRUCT<a: BIGINT, b: STRING>, l ARRAY<DOUBLE>, key INT, added STRING"
)
NARROW = "n TINYINT, i TINYINT, f FLOAT, p INT, t STRING, day DATE, s STRING, l ARRAY<TINYINT>, key STRING"


@pytest.mark.slow
@pytest.mark.parametrize("after", [NEW, NARROW], ids=["wider", "narrower"])
def test_events_of_an_earlier_schema_are_read_in_the_present_one(
    spark: SparkSession, tmp_path: Path, after: str
) -> None:
    streams = Streams(tmp_path)
    row = {
        "n": 7, "i": 300, "f": 0.5, "p": "12.25", "t": "ä", "day": 20000, "s": {"a": 1}, "l": [1, None, 400],
        "key": 5,
    }  # fmt: skip
    schema = stored_schema(OLD).remove(stored_schema(OLD).get_field_index("_headers"))
    columns = {
        **{name: [value, None] for name, value in row.items()},
        "_key": [b"k", None],
    }
    arrays = [
        pa.array(columns[field.name], pa.string()).cast(field.type)
        if pa.types.is_decimal(field.type)
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    log = streams.make("s", schema=OLD)
    log.append(pa.record_batch(arrays, schema=schema))
    log = streams.make("s", schema=after)
    log.storage.refresh()
    log.append(conform(pa.record_batch(arrays, schema=schema), stored_schema(after)))
    found = by_java(spark, streams, 0, 4)
    assert found == by_python(log, after, 0, 4)
    assert found[0]["n"] == 7
    assert {**found[0], "_offset": 2, "_time": None} == {**found[2], "_time": None}


@pytest.mark.parametrize("tasks", [1, 3, 4, 100])
def test_tasks_get_consecutive_batches_of_about_the_same_size(tasks: int) -> None:
    sizes = [5, 1, 1, 1, 1, 1, 5, 5]
    batches = [Batch(i, i + 1, 0, float(size * TASK_BYTES)) for i, size in enumerate(sizes)]
    groups = grouped(batches, tasks)
    assert [batch for group in groups for batch in group] == batches
    assert len(groups) <= min(tasks, len(batches))
    assert all(groups)
    if tasks == 4:
        assert [sum(batch.bytes for batch in group) / TASK_BYTES for group in groups] == [5, 5, 5, 5]


def test_a_small_micro_batch_is_one_task() -> None:
    batches = [Batch(i, i + 1, 0, 1000.0) for i in range(100)]
    assert grouped(batches, 4) == [batches]
    assert [len(group) for group in grouped(batches, 4, task_bytes=1)] == [25, 25, 25, 25]


def test_a_range_without_events_has_no_tasks() -> None:
    assert grouped([], 4) == []


@given(
    offsets=st.lists(st.integers(0, 30) | st.none(), max_size=40),
    chunks=st.lists(st.integers(1, 10), min_size=1),
    begins=st.sets(st.integers(0, 30), max_size=5),
)
def test_batches_begin_at_their_offsets_however_events_were_handed_over(
    offsets: list[int | None], chunks: list[int], begins: set[int]
) -> None:
    ordered = iter(sorted(offset for offset in offsets if offset is not None))
    events = [{"offset": None if offset is None else next(ordered)} for offset in offsets]
    event = pa.array(events, pa.struct([("offset", pa.int64())]))
    whole = pa.record_batch([pa.array(range(len(events)), pa.int64()), event], names=["n", EVENT])
    handed, at = [], 0
    while at < len(events):
        size = chunks[len(handed) % len(chunks)]
        handed.append(whole.slice(at, size))
        at += size
    found = list(regrouped(handed, sorted(begins)))
    assert [n for batch in found for n in batch.column("n").to_pylist()] == list(range(len(events)))
    numbers = [
        {sum(begin <= event["offset"] for begin in begins) for event in batch.column(EVENT).to_pylist()
         if event["offset"] is not None}
        for batch in found
    ]  # fmt: skip
    known = [number.pop() for number in numbers if number]
    assert not any(numbers), "a batch has events of one batch only"
    assert known == sorted(set(known)), "and all of them"


@given(
    st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=8), st.integers(1, 15), st.integers(1, 400)
)
def test_batches_of_a_source_without_offsets_are_as_large_as_the_limits(
    chunks: list[list[int]], events: int, size: int
) -> None:
    handed = [pa.record_batch({"text": pa.array(["x" * n for n in chunk], pa.string())}) for chunk in chunks]
    found = list(gathered(handed, Limits(events, size)))
    assert [t for batch in found for t in batch.column("text").to_pylist()] == [
        "x" * n for chunk in chunks for n in chunk
    ]
    assert all(1 <= batch.num_rows <= events for batch in found)
    if sum(batch.nbytes for batch in handed) <= size:
        assert [batch.num_rows for batch in found[:-1]] == [events] * (len(found) - 1)
