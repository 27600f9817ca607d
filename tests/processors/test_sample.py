from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from penstock.processors.sample import SampleProcessor
from tests.processors.kit import applied, stage, with_event
from tests.sql.helpers import refusal

COUNT = 2000


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(COUNT).selectExpr("id", "id % 50 AS customer", "map('a', id) AS m")


def ids(df: DataFrame, **how: Any) -> list[int]:
    events, notes = applied(SampleProcessor(**how), df)
    assert not notes
    return [event["id"] for event in events]


@pytest.mark.parametrize("rate", [0.01, 0.25, 0.9])
def test_a_fraction_stays(numbers: DataFrame, rate: float) -> None:
    kept = ids(with_event(numbers), rate=rate)
    assert abs(len(kept) - rate * COUNT) < 4 * (rate * (1 - rate) * COUNT) ** 0.5
    assert ids(with_event(numbers.repartition(7)), rate=rate) != []
    assert sorted(ids(with_event(numbers.repartition(7)), rate=rate)) == kept


def test_the_whole_stays(numbers: DataFrame) -> None:
    assert ids(with_event(numbers), rate=1) == ids(with_event(numbers), every=1) == list(range(COUNT))


def test_another_seed_chooses_others(numbers: DataFrame) -> None:
    assert ids(with_event(numbers), rate=0.5, seed=1) != ids(with_event(numbers), rate=0.5)
    with_offset = with_event(numbers, offset="id")
    assert ids(with_offset, every=10, seed=1)[:2] == [9, 19]


def test_events_of_one_value_stay_together(numbers: DataFrame) -> None:
    kept = ids(with_event(numbers), rate=0.5, by=["customer"])
    assert len(kept) == len({id % 50 for id in kept}) * COUNT / 50
    assert 0 < len(kept) < COUNT


def test_events_of_one_key_stay_together(numbers: DataFrame) -> None:
    keyed = with_event(numbers, key="CAST(customer AS STRING)")
    kept = ids(keyed, rate=0.5, by="key")
    assert len(kept) == len({id % 50 for id in kept}) * COUNT / 50
    without = ids(with_event(numbers), rate=0.5, by="key")
    assert without == ids(with_event(numbers), rate=0.5)


def test_every_nth_goes_by_offset(numbers: DataFrame) -> None:
    assert ids(with_event(numbers, offset="id + 3"), every=100) == list(range(97, COUNT, 100))
    assert 100 < len(ids(with_event(numbers), every=10)) < 300


def test_refusals(numbers: DataFrame) -> None:
    problem = refusal(SampleProcessor(rate=0.5, by=["nope"]).apply, with_event(numbers), stage())
    assert (problem.path, problem.code) == ("by[0]", "unknown_column")
    for wrong in ({}, {"rate": 0.1, "every": 2}, {"every": 2, "by": "key"}, {"rate": 0.1, "by": []}):
        with pytest.raises(ValidationError):
            SampleProcessor.model_validate(wrong)
