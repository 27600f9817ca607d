"""Joins of frames that have an end, as in a test run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.processors.join import JoinProcessor
from tests.flows import Streams
from tests.processors.kit import applied, stage, through, with_event

PAYMENTS = "order_id BIGINT, paid_at TIMESTAMP, amount DOUBLE"


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    streams = Streams(tmp_path)
    streams.make("payments", schema=PAYMENTS)
    return streams


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    df = spark.sql(
        "SELECT id, to_timestamp(concat('2024-01-01 00:00:', t)) AS at, country FROM VALUES "
        "(1L, '10', 'DE'), (2L, '20', 'FR'), (3L, '30', NULL), (4L, NULL, 'DE') AS o (id, t, country)"
    )
    return with_event(df, offset="id")


def paid(order: int, second: int, amount: float) -> dict[str, Any]:
    return {"order_id": order, "paid_at": f"2024-01-01T00:00:{second:02d}Z", "amount": amount}


GIVEN = [paid(1, 12, 1.0), paid(1, 5, 0.0), paid(2, 31, 3.0), paid(9, 10, 9.0)]


def joined(orders: DataFrame, streams: Streams, **how: Any) -> list[tuple[int, float | None]]:
    step = JoinProcessor(
        **{
            "stream": "payments",
            "on": {"id": "order_id"},
            "within": "10s",
            "time": "at",
            "stream_time": "paid_at",
            **how,
        }
    )
    events, notes = applied(step, orders, site=streams.site(), given=GIVEN)
    assert [(note["code"], note["event"]["offset"]) for note in notes] == [("no_time", 4)]
    assert all(event["$event"]["offset"] == event["id"] for event in events)
    name = how.get("into", "payments")
    return sorted((event["id"], event[name] and event[name]["amount"]) for event in events)


def test_partners_are_near_in_time(orders: DataFrame, streams: Streams) -> None:
    assert joined(orders, streams) == [(1, 0.0), (1, 1.0)]
    assert joined(orders, streams, within="11s") == [(1, 0.0), (1, 1.0), (2, 3.0)]
    assert joined(orders, streams, kind="left", into="p") == [(1, 0.0), (1, 1.0), (2, None), (3, None)]


def test_a_condition_in_sql(orders: DataFrame, streams: Streams) -> None:
    on = "payments.order_id = id AND 1 / payments.amount > 0 AND country = 'DE'"
    assert joined(orders, streams, on=on) == [(1, 1.0)]
    computed = "id * 2 = payments.order_id * CAST('2' AS INT)"
    assert joined(orders, streams, on=computed) == [(1, 0.0), (1, 1.0)]


def test_without_answers_there_is_no_partner(orders: DataFrame, streams: Streams) -> None:
    step = JoinProcessor(stream="payments", on="id = payments.order_id", within="1h", kind="left")
    events, _ = applied(step, orders, site=streams.site())
    assert [event["payments"] for event in events] == [None] * 4


@pytest.mark.parametrize(
    ("how", "path", "code"),
    [
        ({"stream": "nope"}, "stream", "unknown_reference"),
        ({"on": ["id"]}, "on[0]", "unknown_column"),
        ({"on": {"nope": "order_id"}}, "on.nope", "unknown_column"),
        ({"on": {"country": "order_id"}}, "on.country", "sql_type"),
        ({"on": "id = order_id"}, "on", "unknown_column"),
        ({"on": "payments.amount > 0"}, "on", "join_without_key"),
        ({"on": "id = 1 AND payments.order_id = 2"}, "on", "join_without_key"),
        ({"on": "id + payments.order_id"}, "on", "sql_type"),
        ({"on": "count(*) = payments.order_id"}, "on", "stateful_sql"),
        ({"into": "country"}, "into", "duplicate_column"),
        ({"time": "id"}, "time", "sql_type"),
        ({"stream_time": "amount"}, "stream_time", "sql_type"),
    ],
)
def test_refusals(orders: DataFrame, streams: Streams, how: dict[str, Any], path: str, code: str) -> None:
    step = JoinProcessor(**{"stream": "payments", "on": {"id": "order_id"}, "within": "1m", **how})
    with pytest.raises(Invalid) as caught:
        through(step, orders, stage(site=streams.site()))
    assert [(p.path, p.code) for p in caught.value.problems] == [(path, code)]
