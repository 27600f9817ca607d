"""Which sinks get an event: those that were chosen for it, whatever its source and its way here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from penstock.engine.delivery.backlog import rereader_of
from penstock.engine.plan.plan import Plan, plan_flow
from penstock.engine.runtime.failures import failure_of
from penstock.frames.hidden import EVENT, EVENT_TYPE
from penstock.frames.logs import LOGS
from tests.flows import Streams, flow_of, pipeline, run

TENTH = {"type": "route", "rules": [{"when": "seq % 10 = 0", "sinks": ["big"]}], "default": ["rest"]}
SINKS = [{"id": id, "type": "stream", "stream": id} for id in ("big", "rest")]


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    found = Streams(tmp_path)
    for id in ("big", "rest"):
        found.make(id)
    found.make("in", schema="seq BIGINT")
    return found


def counts(streams: Streams) -> dict[str, int]:
    return {id: LOGS.log(streams.place(id).directory).bounds().next for id in ("big", "rest")}


def test_generated_events_go_where_they_are_routed(
    spark: SparkSession, tmp_path: Path, streams: Streams
) -> None:
    raw = pipeline(source={"type": "generate", "count": 100}, processors=[TENTH], sinks=SINKS)
    assert run(spark, raw, tmp_path / "ck", streams.site()).outcome == "completed"
    assert counts(streams) == {"big": 10, "rest": 90}


def test_events_that_are_read_again_go_where_they_are_routed(spark: SparkSession, streams: Streams) -> None:
    LOGS.log(streams.place("in").directory).append(pa.record_batch({"seq": pa.array(range(100))}))
    source = {"type": "stream", "stream": "in"}
    plan = plan_flow(flow_of(pipeline(source=source, processors=[TENTH], sinks=SINKS), streams.site()), spark)
    rereader = rereader_of(plan, spark)
    assert rereader is not None
    df = rereader.frame(0, 100)
    assert [plan.chosen(df, sink).count() for sink in plan.flow.sinks] == [10, 90]


def test_an_event_whose_sinks_are_lost_fails_the_batch(spark: SparkSession, streams: Streams) -> None:
    flow = flow_of(pipeline(processors=[TENTH], sinks=SINKS), streams.site())
    lost = spark.range(3).withColumn(EVENT, f.lit(None).cast(EVENT_TYPE))
    with pytest.raises(Exception, match="lost_event") as caught:
        Plan(flow, lost, [], {}).chosen(lost, flow.sinks[0]).count()
    failure = failure_of(caught.value)
    assert (failure.fatal, failure.problem.code) == (True, "lost_event")
