"""A JVM that gets on, and ones that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.spark import heartbeat as module
from penstock.spark.heartbeat import Heartbeat
from tests.cli.commands import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answers(*pairs: tuple[float, float]) -> Heartbeat:
    nothing: Any = None
    found = Heartbeat(nothing, 20, print)
    found._answers.extend(pairs)
    return found


def test_time_spent_on_garbage() -> None:
    busy = answers((0, 1.0), (6, 6.9), (12, 12.6), (21, 21.5))
    assert busy.ailment(20) == "garbage"
    assert answers((0, 1.0), (6, 6.9)).ailment(20) is None, "not for so long yet"
    assert answers((0, 1.0), (6, 6.9)).ailment() == "garbage", "but it is suspected"
    assert answers((0, 1.0), (3, 4.0), (21, 13.0)).ailment(20) is None, "half of the time is no harm"
    assert answers().ailment() is None


def test_silence() -> None:
    found = answers((0, 0.0))
    found._silent_s = 6
    assert (found.ailment(), found.ailment(20)) == ("silent", None)
    young = answers()
    young._silent_s = 30
    assert young.ailment(20) is None, "the first answer may take longer"


@pytest.mark.slow
def test_a_jvm_that_answers_is_well(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.05)
    found = Heartbeat(spark, 20, print)
    found.start()
    wait_for("answers", lambda: len(found._answers) > 3)
    assert all(garbage_s >= 0 for _, garbage_s in found._answers)
    assert found.ailment() is None
