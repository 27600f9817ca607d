from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.frames.hidden import EVENT
from penstock.processors.outbox import OutboxProcessor
from tests.processors.kit import applied, stage, with_event

SCHEMA = "id STRING, aggregatetype STRING, aggregateid BIGINT, type STRING, payload STRING, tenant STRING"


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    values: list[Any] = [
        ("e1", "order", 7, "created", '{"order_id": 7, "total": 1.5}', "t"),
        ("e2", "order", 7, "paid", '{"order_id": "x"}', None),
        ("e3", "user", 8, None, '{"order_id": 8', "t"),
        ("e4", "order", 9, "removed", None, "t"),
    ]
    return with_event(spark.createDataFrame(values, SCHEMA), offset="aggregateid", time="current_timestamp()")


def test_the_payload_becomes_the_event(rows: DataFrame) -> None:
    step = OutboxProcessor.model_validate(
        {"schema": "order_id BIGINT, total DOUBLE", "headers": {"who": "tenant"}}
    )
    events, notes = applied(step, rows)
    assert [(event["order_id"], event["total"], event[EVENT]["key"]) for event in events] == [
        (7, 1.5, "7"),
        (None, None, "9"),
    ]
    assert events[0][EVENT]["headers"] == {
        "event_id": "e1",
        "event_type": "created",
        "aggregate_type": "order",
        "who": "t",
    }
    assert events[0][EVENT]["offset"] == 7
    assert events[0][EVENT]["time"] is not None
    assert events[0][EVENT]["sinks"] is None
    assert [(note["code"], note["event"]["offset"]) for note in notes] == [
        ("malformed_payload", 7),
        ("malformed_payload", 8),
    ]
    assert '"id":"e2"' in notes[0]["row"]


def test_without_a_schema_the_payload_stays_text(rows: DataFrame) -> None:
    events, notes = applied(OutboxProcessor(), rows)
    assert not notes
    assert [event["value"] for event in events][2:] == ['{"order_id": 8', None]
    assert "event_type" not in events[2][EVENT]["headers"]


def test_the_aggregate_chooses_the_sink(rows: DataFrame) -> None:
    step = OutboxProcessor(route="{aggregate_type}_events")
    events, notes = applied(step, rows, sinks=("order_events", "others"))
    assert [event[EVENT]["sinks"] for event in events] == [["order_events"]] * 3
    assert [(note["code"], note["message"]) for note in notes] == [
        ("unknown_sink", "there is no sink 'user_events'")
    ]


def test_a_payload_of_columns_is_json_too(spark: SparkSession) -> None:
    df = spark.sql("SELECT 'a' AS aggregatetype, '1' AS aggregateid, struct(1 AS n, 'x' AS s) AS payload")
    (event,), _ = applied(OutboxProcessor(), with_event(df))
    assert event["value"] == '{"n":1,"s":"x"}'
    assert event[EVENT]["headers"] == {"aggregate_type": "a"}
    (event,), _ = applied(OutboxProcessor.model_validate({"schema": "n INT"}), with_event(df))
    assert event["n"] == 1


def test_refusals(rows: DataFrame) -> None:
    step = OutboxProcessor.model_validate(
        {"payload": "body", "event_type": "kind", "headers": {"x": "y"}, "schema": "a NOPE"}
    )
    with pytest.raises(Invalid) as caught:
        step.apply(rows, stage())
    assert [(p.path, p.code) for p in caught.value.problems] == [
        ("payload", "unknown_column"),
        ("event_type", "unknown_column"),
        ("headers.x", "unknown_column"),
        ("schema", "schema_syntax"),
    ]
    with pytest.raises(Invalid, match="not JSON"):
        OutboxProcessor(payload="aggregateid").apply(rows, stage())
    for route in ("plain", "{x}", "{aggregate_type", "{}"):
        with pytest.raises(ValidationError):
            OutboxProcessor(route=route)
