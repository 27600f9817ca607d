"""A contract with Spark: which questions a planner is asked, and what becomes of its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.runtime.failures import java_failure
from penstock.frames.faults import Fault
from penstock.frames.streams.pieces import slice_of
from penstock.spark.planned_source import FORMAT, PLANNERS, Offset, Slice, options
from penstock.spark.queries import failure_in
from penstock.streams.frames import Frame, encode_body

KIND = "scripted"


class Scripted:
    """Has one batch of three events, and notes what it is asked."""

    asked: list[str]
    fault: Exception | None

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self.file = Path(reading["file"])

    def note(self, question: str) -> None:
        self.asked.append(question)

    def initial(self) -> Offset:
        self.note("initial")
        return {"offset": 0}

    def latest(self, start: Offset) -> Offset | None:
        self.note(f"latest {start['offset']}")
        if self.fault is not None:
            raise self.fault
        return {"offset": 3} if start["offset"] == 0 else None

    def available_now(self) -> None:
        self.note("available_now")

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        self.note(f"partitions {start['offset']} {end['offset']}")
        size = self.file.stat().st_size
        piece = {"path": str(self.file), "at": 0, "end": size, "first": 0, "next": 3}
        return [slice_of([piece], "skip", raw=False)]

    def commit(self, end: Offset) -> None:
        self.note(f"commit {end['offset']}")

    def stop(self) -> None:
        self.note("stop")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[type[Scripted]]:
    body = encode_body(pa.record_batch({"id": pa.array([1, 2, 3], pa.int64())}), "zstd")
    (tmp_path / "f.log").write_bytes(b"".join(map(bytes, Frame(0, 0, body).encode())))
    made = type("Made", (Scripted,), {"asked": [], "fault": None})
    PLANNERS[KIND] = made
    yield made
    del PLANNERS[KIND]


def started(spark: SparkSession, tmp_path: Path, rows: list[int]) -> StreamingQuery:
    reading = options(spark, {"kind": KIND, "file": str(tmp_path / "f.log")})
    frame = spark.readStream.format(FORMAT).options(**reading).schema("id BIGINT").load()
    writer = frame.writeStream.foreachBatch(lambda df, _: rows.extend(row["id"] for row in df.collect()))
    return writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start()


def test_a_query_asks_for_ends_and_tasks_and_says_what_is_delivered(
    spark: SparkSession, tmp_path: Path, scripted: type[Scripted]
) -> None:
    rows: list[int] = []
    started(spark, tmp_path, rows).awaitTermination(60)
    assert rows == [1, 2, 3]
    asked = dict.fromkeys(each for each in scripted.asked if each not in ("initial", "latest 3"))
    assert list(asked) == ["available_now", "latest 0", "partitions 0 3", "stop"]
    scripted.asked.clear()
    started(spark, tmp_path, rows).awaitTermination(60)
    assert rows == [1, 2, 3], "the offset of the checkpoint is given back as it was"


@pytest.mark.parametrize(
    ("error", "code", "fatal"),
    [(Fault("gap", "offsets 1 to 2 are gone"), "gap", True), (ValueError("a bug"), "failed", False)],
)
def test_an_error_of_the_planner_fails_the_query_with_its_text(
    spark: SparkSession, tmp_path: Path, scripted: type[Scripted], error: Exception, code: str, fatal: bool
) -> None:
    scripted.fault = error
    query = started(spark, tmp_path, [])
    with pytest.raises(Exception, match=str(error).split("] ")[-1]):
        query.awaitTermination(60)
    failure = java_failure(failure_in(query))
    assert (failure.problem.code, failure.fatal) == (code, fatal)
    assert "stop" in scripted.asked
    assert json.dumps(failure.problem.message).count("a bug" if code == "failed" else "gone") == 1
