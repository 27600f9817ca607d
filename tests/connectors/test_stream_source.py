from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.runtime.flow_log_reader import LogLine, LogReader
from penstock.errors import Invalid
from penstock.streams.events import META, RAW
from penstock.streams.storage import Cursor
from tests.flows import Streams, flow_of, json_rows, keeper, pipeline, running

pytestmark = pytest.mark.slow

QUICK = {"max_ms": 10}


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def wait_for(what: str, ready: Callable[[], Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)


def to_files(path: Path, **source: Any) -> dict[str, Any]:
    sinks = [{"type": "file", "path": str(path), "format": "json"}]
    return pipeline(source={"type": "stream", "stream": "s", **source}, sinks=sinks, batch=QUICK)


def raw_events() -> pa.RecordBatch:
    columns = [
        [b"plain", b"", b"\xff\x00\xfe", None],
        [b"k", None, b"\xc3\x28", None],
        [[("a", "1")], None, [], None],
    ]
    schema = pa.schema([*RAW, *META])
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def test_raw_events_come_through_byte_by_byte(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    streams.make("s").append(raw_events())
    query = """SELECT hex(cast(value AS BINARY)) AS value, hex(cast(key AS BINARY)) AS key,
                      headers['a'] AS a, size(headers) AS headers, _offset, unix_millis(_time) AS time
               FROM input"""
    raw = to_files(tmp_path / "out", metadata=True)
    raw["spec"]["processors"] = [{"type": "sql", "query": query}]
    began = time.time() * 1000
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
        wait_for("events", lambda: len(json_rows(tmp_path / "out")) == 4)
    rows = json_rows(tmp_path / "out")
    assert [row.pop("_offset") for row in rows] == [0, 1, 2, 3]
    assert all(began - 60_000 < row.pop("time") < began + 60_000 for row in rows)
    assert rows == [
        {"value": b"plain".hex().upper(), "key": b"k".hex().upper(), "a": "1", "headers": 1},
        {"value": "", "key": None, "a": None, "headers": None},
        {"value": "FF00FE", "key": "C328", "a": None, "headers": 0},
        {"value": None, "key": None, "a": None, "headers": None},
    ]


def test_typed_events_have_their_columns(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    old = streams.make("s", schema="id INT, gone STRING")
    old.append(pa.record_batch({"id": pa.array([1], pa.int32()), "gone": ["x"]}))
    log = streams.make("s", schema="id BIGINT, key STRING, at TIMESTAMP, tags ARRAY<STRING>")
    stored = pa.record_batch(
        {
            "id": pa.array([2]),
            "key": ["own"],
            "at": pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC")),
            "tags": [["a", "b"]],
            "_key": pa.array([b"k"]),
        }
    )
    log.append(stored)
    raw = to_files(tmp_path / "out", metadata=True)
    raw["spec"]["processors"] = [{"type": "drop_fields", "fields": ["_time", "_headers"]}]
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
        wait_for("events", lambda: len(json_rows(tmp_path / "out")) == 2)
    assert json_rows(tmp_path / "out") == [
        {"id": 1, "key": None, "at": None, "tags": None, "_offset": 0, "_key": None},
        {
            "id": 2,
            "key": "own",
            "at": "2023-11-14T22:13:20.000000Z",
            "tags": ["a", "b"],
            "_offset": 1,
            "_key": "k",
        },
    ]


def test_readers_go_at_their_own_pace_and_go_on_where_they_stopped(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("s", schema="id BIGINT")
    log.append(pa.record_batch({"id": list(range(5))}))

    def read(name: str, want: int, **source: Any) -> list[int]:
        site = streams.site(f"pipeline:{name}")
        kept = keeper(spark, to_files(tmp_path / name, **source), tmp_path / f"ck-{name}", site=site)
        with running(kept):
            wait_for("events", lambda: len(json_rows(tmp_path / name)) == want)
            wait_for("cursor", lambda: cursors().get(f"pipeline:{name}") == log.bounds().next)
        return sorted(row["id"] for row in json_rows(tmp_path / name))

    def cursors() -> dict[str, int]:
        return {cursor.reader: cursor.next for cursor in log.storage.cursors()}

    assert read("one", 5) == [0, 1, 2, 3, 4]
    log.append(pa.record_batch({"id": list(range(5, 8))}))
    assert cursors() == {"pipeline:one": 5}
    assert read("two", 2, position="offset:6") == [6, 7]
    assert cursors() == {"pipeline:one": 5, "pipeline:two": 8}
    assert read("one", 8) == [0, 1, 2, 3, 4, 5, 6, 7], "the checkpoint counts, not the position"


def test_a_reader_with_an_end_completes_there(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    log = streams.make("s", schema="id BIGINT")
    for i in range(10):
        log.append(pa.record_batch({"id": list(range(i * 10, i * 10 + 10))}))

    def read(**source: Any) -> list[int]:
        raw = to_files(tmp_path / "out", **source)
        raw["spec"]["batch"] = {"max_events": 7, "max_inflight": 2}
        kept = keeper(spark, raw, tmp_path / "ck", site=streams.site())
        kept.start()
        kept.join(60)
        assert kept.state.outcome == "completed", kept.state
        return sorted(row["id"] for row in json_rows(tmp_path / "out"))

    assert read(position="offset:13", until="offset:38") == list(range(13, 38))
    assert len(list((tmp_path / "out").rglob("penstock_batch=*"))) == 2, "of 14 events, and the rest"
    assert _cursor(log, "pipeline:test").next == 38, "also after the last batch"
    assert read(position="offset:13", until="offset:38") == list(range(13, 38)), "it ends where it ended"
    assert read(position="offset:13", until="offset:50") == list(range(13, 50)), "a later end is another one"
    assert read(position="offset:13", until="offset:999") == list(range(13, 100)), "what is there now"


def test_a_new_checkpoint_goes_on_at_the_cursor(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("s", schema="id BIGINT")
    log.append(pa.record_batch({"id": list(range(10))}))

    def read(checkpoint: str, path: str, flow: str = "pipeline:test") -> list[int]:
        raw = to_files(tmp_path / path, position="earliest", until="latest")
        kept = keeper(spark, raw, tmp_path / checkpoint, site=streams.site(flow))
        kept.start()
        kept.join(60)
        assert kept.state.outcome == "completed", kept.state
        return sorted(row["id"] for row in json_rows(tmp_path / path))

    assert read("one", "a") == list(range(10))
    log.append(pa.record_batch({"id": [10, 11]}))
    assert read("two", "b") == [10, 11], "nothing is delivered twice"
    assert read("three", "c", "pipeline:other") == list(range(12)), "another flow has no cursor"


def test_a_gap_is_counted_or_fails(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    log = streams.make("s", schema="id BIGINT", wal={"max_segments": 2, "segment_bytes": 2000})
    for i in range(20):
        log.append(pa.record_batch({"id": list(range(i * 50, i * 50 + 50))}))
    first = log.bounds().first
    assert first > 0
    strict = keeper(
        spark,
        to_files(tmp_path / "strict", gap="fail", position="offset:0"),
        tmp_path / "ck1",
        site=streams.site(),
    )
    strict.start()
    strict.join(60)
    assert strict.state.outcome == "failed"
    assert strict.state.error is not None
    assert strict.state.error["code"] == "gap"
    assert f"offsets 0 to {first - 1}" in strict.state.error["message"]
    assert len(strict.state.attempts) == 1, "trying again cannot help"

    site = streams.site("pipeline:lenient")
    lenient = to_files(tmp_path / "out", position="offset:0")
    with running(keeper(spark, lenient, tmp_path / "ck2", site=site)):
        wait_for("events", lambda: len(json_rows(tmp_path / "out")) == 1000 - first)
        wait_for("cursor", lambda: _cursor(log, "pipeline:lenient").skipped == first)
    assert log.storage.counts()["skipped_by_readers"] == first
    assert min(row["id"] for row in json_rows(tmp_path / "out")) == first


def test_what_turns_out_to_be_damaged_is_a_gap_too(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("s", schema="id BIGINT")
    for i in range(3):
        log.append(pa.record_batch({"id": list(range(i * 10, i * 10 + 10))}))
    (segment,) = streams.place("s").directory.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1  # in the body of the second frame
    segment.write_bytes(data)
    strict = keeper(
        spark,
        to_files(tmp_path / "strict", gap="fail", position="offset:0"),
        tmp_path / "ck1",
        site=streams.site(),
    )
    strict.start()
    strict.join(60)
    assert strict.state.error is not None
    assert (strict.state.outcome, strict.state.error["code"]) == ("failed", "gap")
    assert "offsets 10 to 19" in strict.state.error["message"]
    with running(keeper(spark, to_files(tmp_path / "out"), tmp_path / "ck2", site=streams.site("other"))):
        wait_for("events", lambda: len(json_rows(tmp_path / "out")) == 20)
    assert log.storage.counts()["skipped_by_readers"] == 10


def test_a_transaction_that_never_ends_does_not_stop_the_flow_and_is_in_its_log(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("s", schema="id BIGINT")
    log.append(pa.record_batch({"id": [0, 1]}), tx=[(0, 2, "forgotten", False)])
    log.append(pa.record_batch({"id": [2]}))
    raw = to_files(tmp_path / "out")
    raw["spec"]["batch"] = QUICK | {"max_tx_ms": 500}
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
        wait_for("events", lambda: len(json_rows(tmp_path / "out")) == 3)
        wait_for("count", lambda: log.storage.counts()["unended_transactions"] == 1)
        reader = LogReader(tmp_path / "ck" / "state", "warning")
        found: list[LogLine] = []
        wait_for("line", lambda: found.extend(reader.look()) or found)
    assert found[0].fields["code"] == "transaction_unended"
    assert "'forgotten', from offset 0 on" in found[0].message


def test_a_newer_epoch_stops_an_older_one(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    log = streams.make("s", schema="id BIGINT")
    log.append(pa.record_batch({"id": [1]}))
    kept = keeper(spark, to_files(tmp_path / "out"), tmp_path / "ck", site=streams.site(epoch=3))
    kept.start()
    wait_for("events", lambda: json_rows(tmp_path / "out"))
    log.move_cursor(Cursor("pipeline:test", 1, epoch=4))
    log.append(pa.record_batch({"id": [2]}))
    kept.join(60)
    assert kept.state.error is not None
    assert (kept.state.outcome, kept.state.error["code"]) == ("failed", "fenced")


def test_offsets_belong_to_one_life_of_a_stream(streams: Streams) -> None:
    raw = to_files(Path("out"))
    streams.make("s")
    key = flow_of(raw, streams.site()).position_key
    assert flow_of(to_files(Path("out"), position="latest"), streams.site()).position_key == key
    other = Streams(streams.home.root.parent)
    other.specs = streams.specs
    other.life = "next"
    assert flow_of(raw, other.site()).position_key != key


def test_a_stream_that_does_not_exist_is_told(spark: SparkSession, streams: Streams) -> None:
    from penstock.engine.plan.plan import plan_flow

    with pytest.raises(Invalid) as caught:
        plan_flow(flow_of(to_files(Path("out")), streams.site()), spark)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("unknown_reference", "spec.source.stream")


def _cursor(log: Any, reader: str) -> Cursor:
    return next((c for c in log.storage.cursors() if c.reader == reader), Cursor(reader, 0))
