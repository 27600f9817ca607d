from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.connectors.base import DeliveryId
from penstock.connectors.stream.sink import StreamSink
from penstock.engine.delivery.events import FrameEvents
from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT
from penstock.frames.known import event_of
from penstock.streams.events import conform, payload_schema, stored_schema
from penstock.streams.log import Log
from tests.flows import Streams

TYPED = "id BIGINT, name STRING, amount DOUBLE"


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def delivery(batch: int, lineage: str = "life", sink: str = "s") -> DeliveryId:
    return DeliveryId("test", sink, lineage, batch)


def numbers(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("id", "concat('n', id) AS name", "id / 2 AS amount")


def rows(log: Log, ddl: str | None) -> list[dict[str, Any]]:
    whole = stored_schema(ddl)
    chunks = [chunk.batch for chunk in log.read(log.bounds().first)]
    return [row for batch in chunks if batch is not None for row in conform(batch, whole).to_pylist()]


def write(streams: Streams, df: DataFrame, id: DeliveryId, epoch: int = 1) -> int:
    return StreamSink(stream="s").open(streams.site(epoch=epoch)).write(shaped(streams, df), id).events


def shaped(streams: Streams, df: DataFrame) -> FrameEvents:
    return FrameEvents(StreamSink(stream="s").shape(df, streams.site()))


def problems(streams: Streams, ddl: str) -> list[tuple[str, str]]:
    found = list(StreamSink(stream="s").check(StructType.fromDDL(ddl), streams.site()))
    assert {problem.path for problem in found} <= {"stream"}
    return [(problem.code, problem.message) for problem in found]


def test_a_batch_is_appended_whole_and_in_order(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", schema=TYPED)
    assert write(streams, numbers(spark, 25_000, 3), delivery(0)) == 25_000
    found = rows(log, TYPED)
    assert [row["id"] for row in found] == list(range(25_000))
    assert found[7] == {"id": 7, "name": "n7", "amount": 3.5, "_key": None, "_headers": None}
    chunk = next(log.read(0))
    assert chunk.batch is not None
    assert chunk.batch.schema.equals(payload_schema(TYPED)), "nobody has a key, so none is stored"


def test_a_repeated_batch_is_not_appended_again(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", schema=TYPED)
    assert write(streams, numbers(spark, 10), delivery(0)) == 10
    assert write(streams, numbers(spark, 10), delivery(0)) == 10
    assert log.bounds().next == 10
    assert write(streams, numbers(spark, 5), delivery(1)) == 5
    assert write(streams, numbers(spark, 3), delivery(0, lineage="next life")) == 3
    assert write(streams, numbers(spark, 2), delivery(0, sink="other")) == 2
    assert log.bounds().next == 20


def test_an_empty_batch_writes_nothing(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", schema=TYPED)
    assert write(streams, numbers(spark, 0), delivery(0)) == 0
    assert log.bounds().next == 0


def test_an_older_epoch_is_refused(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", schema=TYPED)
    write(streams, numbers(spark, 1), delivery(0), epoch=5)
    with pytest.raises(Fault) as caught:
        write(streams, numbers(spark, 1), delivery(1), epoch=4)
    assert caught.value.problem.code == "fenced"
    assert log.bounds().next == 1


def test_columns_go_by_name_and_may_be_wider_in_the_stream(spark: SparkSession, streams: Streams) -> None:
    ddl = "id BIGINT, who STRUCT<a: BIGINT, b: STRING>, data BINARY, gone STRING"
    log = streams.make("s", schema=ddl)
    df = spark.sql(
        "SELECT 'text' AS data, named_struct('b', 'x', 'a', 1) AS who, CAST(7 AS INT) AS ID, 'k' AS _key, "
        "map('h', '1') AS _headers"
    )
    assert problems(streams, df.schema.toDDL()) == []
    write(streams, df, delivery(0))
    assert rows(log, ddl) == [
        {
            "id": 7,
            "who": {"a": 1, "b": "x"},
            "data": b"text",
            "gone": None,
            "_key": b"k",
            "_headers": [("h", "1")],
        }
    ]


def test_what_a_typed_stream_cannot_take_is_told_before(streams: Streams) -> None:
    streams.make("s", schema="id BIGINT NOT NULL, name STRING, at TIMESTAMP")
    assert problems(streams, "id BIGINT, name STRING, at TIMESTAMP") == []
    assert problems(streams, "id INT") == []
    codes = [code for code, _ in problems(streams, "name INT, extra STRING, _offset BIGINT")]
    assert codes == ["extra_column", "extra_column", "missing_column", "wrong_type"]
    assert [code for code, _ in problems(streams, "id DOUBLE")] == ["wrong_type"]
    assert [code for code, _ in problems(streams, "id BIGINT, _headers STRING")] == ["wrong_type"]
    assert problems(streams, "x INT")[0][0] == "extra_column"


def with_event(df: DataFrame, key: str, headers: str = "NULL") -> DataFrame:
    return df.withColumn(EVENT, event_of(offset=f.lit(7), key=f.expr(key), headers=f.expr(headers)))


def test_an_event_without_what_the_stream_demands_is_told_apart(
    spark: SparkSession, streams: Streams
) -> None:
    log = streams.make("s", schema="id BIGINT NOT NULL, name STRING, at TIMESTAMP NOT NULL")
    df = spark.sql(
        "SELECT * FROM VALUES (1L, 'x', now()), (CAST(NULL AS BIGINT), 'é', now()), (3L, 'z', NULL) "
        "AS t(id, name, at)"
    )
    events = shaped(streams, with_event(df, "'k'"))
    done = StreamSink(stream="s").open(streams.site()).write(events, delivery(0))
    assert done.events == 1
    assert [(bad.code, json.loads(bad.row)["name"]) for bad in done.rejected] == [
        ("null_value", "é"),
        ("null_value", "z"),
    ]
    assert ["'id'" in done.rejected[0].message, "'at'" in done.rejected[1].message] == [True, True]
    assert done.rejected[0].event is not None
    assert (done.rejected[0].event["offset"], done.rejected[0].event["key"]) == (7, "k")
    assert [row["id"] for row in rows(log, "id BIGINT")] == [1]


def test_key_and_headers_travel_by_themselves(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", schema="id BIGINT")
    df = with_event(spark.sql("SELECT 1L AS id"), "'k'", "map('a', 'b')")
    assert problems(streams, df.schema.toDDL()) == []
    write(streams, df, delivery(0))
    write(streams, df.selectExpr("id", "'own' AS _key", f"`{EVENT}`"), delivery(1))
    assert [(row["_key"], row["_headers"]) for row in rows(log, "id BIGINT")] == [
        (b"k", [("a", "b")]),
        (b"own", [("a", "b")]),
    ]


def test_a_raw_stream_takes_a_value(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s")
    df = spark.sql("SELECT unhex('FF00') AS value, 'k' AS key, map('a', 'b') AS headers")
    assert problems(streams, df.schema.toDDL()) == []
    write(streams, df, delivery(0))
    write(streams, spark.sql("SELECT 'text' AS value"), delivery(1))
    assert rows(log, None) == [
        {"value": b"\xff\x00", "_key": b"k", "_headers": [("a", "b")]},
        {"value": b"text", "_key": None, "_headers": None},
    ]
    assert [code for code, _ in problems(streams, "value STRING, id BIGINT")] == ["extra_column"]


def test_a_raw_stream_takes_any_event_as_json(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s")
    df = spark.sql("SELECT 1 AS id, 2.5D AS value, 'k' AS key, 'own' AS _key")
    assert problems(streams, df.schema.toDDL()) == []
    write(streams, df, delivery(0))
    assert rows(log, None) == [{"value": b'{"id":1,"value":2.5,"key":"k"}', "_key": b"own", "_headers": None}]


def test_dropped_events_are_counted_by_the_stream_and_acknowledged(
    spark: SparkSession, streams: Streams
) -> None:
    log = streams.make("s", wal={"enabled": False}, buffer={"max_events": 800, "mode": "drop"})
    log.storage.move_cursor(_reader())
    accepted = [write(streams, numbers(spark, 100), delivery(i)) for i in range(12)]
    assert 0 in accepted
    assert log.storage.counts()["dropped_buffer_full"] == accepted.count(0) * 100
    assert log.bounds().next - log.bounds().first == accepted.count(100) * 100


def test_a_write_that_waits_for_room_ends_with_the_run(spark: SparkSession, streams: Streams) -> None:
    log = streams.make("s", wal={"enabled": False}, buffer={"max_events": 800, "mode": "block"})
    log.storage.move_cursor(_reader())
    writer = StreamSink(stream="s").open(streams.site())
    caught: list[BaseException] = []

    def fill() -> None:
        try:
            for i in range(50):
                writer.write(shaped(streams, numbers(spark, 100)), delivery(i))
        except Retryable as error:
            caught.append(error)

    thread = threading.Thread(target=fill)
    thread.start()
    deadline = time.monotonic() + 60
    while log.fill["full"] is None and time.monotonic() < deadline:
        time.sleep(0.05)
    before = log.bounds().next
    assert thread.is_alive()
    writer.cancel()
    thread.join(10)
    assert not thread.is_alive()
    assert caught
    assert log.bounds().next == before
    log.storage.move_cursor(_reader(before))  # there is room now, and the log still works
    assert write(streams, numbers(spark, 100), delivery(99)) == 100


def _reader(next: int = 0) -> Any:
    from penstock.streams.storage import Cursor

    return Cursor("slow", next)
