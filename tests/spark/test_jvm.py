from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from py4j.java_gateway import JavaClass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELEASE = "m\nd\n"
"""How py4j tells the JVM of an object that Python has forgotten; that may happen at any time."""


@pytest.fixture
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that are put to the JVM during a test."""
    client = spark.sparkContext._gateway._gateway_client
    questions: list[str] = []
    send = client.send_command

    def counting(command: str, *args: object, **kwargs: object) -> object:
        if not command.startswith(RELEASE):
            questions.append(command)
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", counting)
    return questions


def test_a_class_is_looked_up_once(spark: SparkSession, asked: list[str]) -> None:
    assert isinstance(spark._jvm.java.util.concurrent.Semaphore, JavaClass)
    assert asked
    asked.clear()
    assert isinstance(spark._jvm.java.util.concurrent.Semaphore, JavaClass)
    assert asked == []


def test_a_static_method_is_looked_up_once_and_called_each_time(
    spark: SparkSession, asked: list[str]
) -> None:
    system = spark._jvm.java.lang.System
    system.nanoTime()
    asked.clear()
    assert system.nanoTime() < system.nanoTime()
    assert len(asked) == 2


def test_what_is_not_there_is_an_error_each_time(spark: SparkSession) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="does not exist in the JVM"):
            _ = spark._jvm.java.lang.System.nothing_of_this_name


def test_making_a_column_asks_the_jvm_only_for_the_column(spark: SparkSession, asked: list[str]) -> None:
    """Spark's own debugging would ask about ten times for each column."""
    from pyspark.sql import functions as f

    f.length(f.lit("warm"))
    asked.clear()
    f.length(f.lit("a"))
    assert len([command for command in asked if not command.startswith("m\n")]) <= 3, asked
