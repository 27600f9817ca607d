"""Appends to streams in Kafka by the tasks of a flow, beside what the driver would have written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.connectors.stream.in_tasks import appender, bodies_of, events_of
from penstock.frames.streams.table import read_range
from penstock.spark.java_classes import java_class
from penstock.spark.micro_batches import SOURCE
from penstock.streams.config import read_config, write_config
from penstock.streams.events import META, payload_schema
from penstock.streams.frames import Body, Placed, encode_body
from penstock.streams.kafka.bodies import Bodies
from penstock.streams.kafka.storage import KafkaStorage
from penstock.streams.log import Log
from penstock.streams.storage import WriteFailed
from tests.connectors.test_file_lossless import FLAT, NESTED, tables
from tests.connectors.test_stream_frames import by_java, rows
from tests.flows import Streams, pipeline, run
from tests.kafka_server import Kafka
from tests.streams.kit import NIGHTLY, cluster_of, events

pytestmark = pytest.mark.slow

several = settings(
    max_examples=30 if NIGHTLY else 3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def streams(broker: Kafka, tmp_path: Path) -> Streams:
    return Streams(tmp_path, cluster_of(broker.address))


@pytest.fixture
def idle_driver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics to which the driver has written frames."""
    found: list[str] = []
    write = Bodies.write

    def noted(self: Bodies, bodies: Sequence[Body]) -> list[tuple[int, int]]:
        found.extend([self._topic] * len(bodies))
        return write(self, bodies)

    monkeypatch.setattr(Bodies, "write", noted)
    return found


def copy(
    spark: SparkSession, streams: Streams, checkpoint: Path, steps: list[Any] | None = None, **batch: Any
) -> None:
    """Run a flow from stream `in` to stream `out`."""
    source = {"type": "stream", "stream": "in", "until": "latest"}
    sink = {"type": "stream", "stream": "out"}
    raw = pipeline(source=source, sinks=[sink], processors=steps or [], batch=batch)
    state = run(spark, raw, checkpoint, streams.site())
    assert state.outcome == "completed", state


def stored(log: Log) -> pa.Table:
    return pa.Table.from_batches([chunk.batch for chunk in log.read(0) if chunk.batch is not None])


@pytest.mark.parametrize("ddl", [FLAT, NESTED], ids=["flat", "nested"])
def test_every_type_is_stored_as_the_driver_stores_it(
    spark: SparkSession, streams: Streams, tmp_path: Path, ddl: str, idle_driver: list[str]
) -> None:
    @several
    @given(table=tables(ddl), compression=st.sampled_from(["none", "lz4", "zstd"]), frame=st.integers(1, 40))
    def check(table: pa.Table, compression: str, frame: int) -> None:
        streams.life = os.urandom(4).hex()
        given = streams.make("in", schema=ddl)
        log = streams.make("out", schema=ddl, storage="kafka", wal={"compression": compression})
        for batch in table.to_batches(max_chunksize=frame):
            given.append(batch)
        copy(spark, streams, tmp_path / streams.life)
        if table.num_rows:
            assert stored(log).schema.equals(payload_schema(ddl))
            assert rows(stored(log)) == rows(stored(given))
        found = rows(read_range(spark, streams.place("out"), 0, table.num_rows).toArrow())
        assert [{**row, "_time": None} for row in found] == [
            {**row, "_time": None}
            for row in rows(read_range(spark, streams.place("in"), 0, table.num_rows).toArrow())
        ]
        assert not idle_driver

    check()


def test_order_keys_headers_and_limits_of_frames_stay(
    spark: SparkSession, streams: Streams, tmp_path: Path, idle_driver: list[str]
) -> None:
    """Four tasks at once write raw events; their frames lie in the topic in any order."""
    given = streams.make("in")
    log = streams.make("out", storage="kafka", wal={"batch": {"max_events": 30}})
    schema = pa.schema([("value", pa.binary()), *META])
    for first in range(0, 2000, 100):
        numbers = range(first, first + 100)
        keys = [b"k%d" % n if n % 300 < 100 and n % 2 else None for n in numbers]
        headers = [[("h", str(n))] if n % 500 < 100 else None for n in numbers]
        given.append(
            pa.record_batch(
                [
                    pa.array([b"v%d" % n for n in numbers]),
                    pa.array(keys, pa.binary()),
                    pa.array(headers, META.field("_headers").type),
                ],
                schema=schema,
            )
        )
    steps = [{"type": "filter", "where": "value != 'v7'"}]
    copy(spark, streams, tmp_path / "ck", steps, max_events=100, max_inflight=8)
    assert not idle_driver
    chunks = [chunk.batch for chunk in log.read(0) if chunk.batch is not None]
    assert max(batch.num_rows for batch in chunks) == 30
    assert {tuple(batch.schema.names) for batch in chunks} == {
        ("value",), ("value", "_key"), ("value", "_headers"), ("value", "_key", "_headers")
    }  # fmt: skip
    wanted = [row for row in stored(given).to_pylist() if row["value"] != b"v7"]
    found = [{"_key": None, "_headers": None, **row} for batch in chunks for row in batch.to_pylist()]
    assert found == wanted
    places = [span.token for span in log.storage.spans(0)]
    assert len(set(places)) == len(places)
    by_tasks = read_range(spark, streams.place("out"), 0, 1999).select("value").toArrow()
    assert by_tasks.column(0).to_pylist() == [row["value"].decode() for row in wanted]


def test_frames_in_any_order_are_read_by_tasks_and_by_the_driver(
    spark: SparkSession, streams: Streams
) -> None:
    """The order of the journal decides, not that of the topic."""
    log = streams.make("s", storage="kafka")
    assert isinstance(log.storage, KafkaStorage)
    bodies = [encode_body(events(1, number), "none") for number in range(40)]
    places = log.storage._bodies.write(bodies)
    shuffled = [(number * 27) % 40 for number in range(40)]
    schema = events(1).schema.serialize().to_pybytes()
    log.append_bodies([Placed(schema, 1, 10, *places[number]) for number in shuffled])
    assert stored(log).column(0).to_pylist() == [b"e%d" % number for number in shuffled]
    assert [row["value"] for row in by_java(spark, streams, 0, 40)] == [b"e%d" % n for n in shuffled]


def test_what_tasks_cannot_store_is_stored_by_the_driver(
    spark: SparkSession, streams: Streams, tmp_path: Path, idle_driver: list[str]
) -> None:
    """Columns that have to be converted or may be missing, events that may be rejected."""
    site = streams.site()
    for schema, columns, writes in (
        ("id BIGINT, t STRING", [("id", pa.int64()), ("t", pa.string())], True),
        ("id BIGINT, t STRING", [("id", pa.int32()), ("t", pa.string())], False),
        ("id BIGINT, t STRING", [("id", pa.int64())], False),
        ("id BIGINT NOT NULL", [("id", pa.int64())], False),
        (None, [("value", pa.string()), ("_key", pa.string())], True),
    ):
        streams.life = os.urandom(4).hex()
        streams.make("out", schema=schema, storage="kafka")
        found = appender(spark, pa.schema(columns), site.stream("out"))
        assert (found is not None) == writes, columns
    streams.make("local", schema="id BIGINT")
    assert appender(spark, pa.schema([("id", pa.int64())]), site.stream("local")) is None
    streams.make("in", schema="id INT").append(pa.record_batch([pa.array([1, 2], pa.int32())], names=["id"]))
    log = streams.make("out", schema="id BIGINT", storage="kafka")
    copy(spark, streams, tmp_path / "ck")
    assert stored(log).to_pylist() == [{"id": 1}, {"id": 2}]
    assert idle_driver


def test_frames_that_kafka_did_not_take_come_back_to_the_driver(
    spark: SparkSession, streams: Streams
) -> None:
    """A task does not fail because of the brokers: the sink tries for as long as its settings say."""
    log = streams.make("out", schema="id BIGINT", storage="kafka")
    place = streams.place("out")
    config = read_config(place.directory)
    gone = streams.home.kafka
    assert gone is not None
    write_config(place.directory, replace(config, kafka=replace(gone, brokers="127.0.0.1:1")))
    writer = appender(spark, pa.schema([("id", pa.int64())]), place)
    write_config(place.directory, config)
    session: Any = spark
    df: Any = spark.range(0, 5, 1, 1)
    data = java_class(spark, SOURCE).write(session._jsparkSession, None, df._jdf, writer)
    answer = bytes(data)[4:]
    assert events_of(answer) == 5
    (body,) = bodies_of([answer], "id BIGINT")
    log.append_bodies([body])
    assert stored(log).column("id").to_pylist() == list(range(5))


def test_frames_that_retention_has_overtaken_are_written_again(streams: Streams) -> None:
    log = streams.make("s", storage="kafka")
    storage = log.storage
    assert isinstance(storage, KafkaStorage)
    schema = events(1).schema.serialize().to_pybytes()

    def placed(first: int) -> list[Body]:
        places = storage._bodies.write([encode_body(events(1, n), "none") for n in (first, first + 1)])
        return [Placed(schema, 1, 10, *place) for place in places]

    kept, lost = placed(0), placed(2)
    log.append(events(1, 9))
    storage._journal.add([["trim", 1, "evicted_retention_ms"]])
    assert log.append_bodies(kept).first == 1
    assert stored(log).column(0).to_pylist() == [b"e0", b"e1"]
    storage.maintain()  # removes the records before them
    with pytest.raises(WriteFailed, match="removed before they were named"):
        log.append_bodies(lost)
    assert log.bounds().next == 3
