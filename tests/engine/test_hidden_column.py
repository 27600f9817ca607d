"""The hidden column `$event`: its type, and that a plan has nothing of it where no step uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from penstock.frames.hidden import EVENT, EVENT_TYPE
from penstock.frames.known import event_from, event_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def read(spark: SparkSession) -> DataFrame:
    return spark.range(3).selectExpr(
        "id", "CAST(id AS STRING) AS _key", "id AS _offset", "map('a', 'b') AS _headers"
    )


def test_both_ways_give_the_declared_type(read: DataFrame) -> None:
    by_name = read.select(event_from(offset="_offset", key="_key", headers="_headers").alias(EVENT))
    by_column = read.select(event_of(offset=f.col("_offset"), key=f.col("id")).alias(EVENT))
    for made in (by_name, by_column):
        declared = made.sparkSession.createDataFrame([], f"`{EVENT}` {EVENT_TYPE}").schema[EVENT].dataType
        assert made.schema[EVENT].dataType.simpleString() == declared.simpleString()
    assert [row[0]["key"] for row in by_name.collect()] == ["0", "1", "2"]
    assert by_column.first()[0]["headers"] is None  # type: ignore[index]


def test_a_plan_makes_no_struct_of_which_only_fields_are_used(read: DataFrame) -> None:
    event = event_from(offset="_offset", key="_key", headers="_headers").alias(EVENT)
    used = read.select("id", event).select("id", f"`{EVENT}`.key", f"`{EVENT}`.sinks")
    plan: Any = used._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
    text = plan.toString()
    assert "named_struct" not in text, text
    assert "_offset" not in text, text
