"""One attempt of a sink, and the thread that may interrupt it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.connectors.base import Delivered, DeliveryId, Events, SinkWriter
from penstock.engine.delivery.attempts import Attempt, Attempts
from penstock.specs.policies import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Writer(SinkWriter):
    """Waits until `goes_on` is set, or until it is cancelled."""

    def __init__(self) -> None:
        self.goes_on, self.begun, self.cancelled = threading.Event(), threading.Event(), False

    def write(self, events: Events | None, delivery: DeliveryId | None) -> Delivered:
        self.begun.set()
        self.goes_on.wait(60)
        return Delivered(1)

    def cancel(self) -> None:
        self.cancelled = True
        self.goes_on.set()


def attempt_of(spark: SparkSession, writer: Writer, deadline_ms: int) -> Attempt:
    return Attempt(spark, writer, Attempts(Effort(deadline_ms=deadline_ms), lambda _: False))


def test_a_success_is_not_cancelled_any_more(spark: SparkSession) -> None:
    """The deadline passes between the last word of the sink and the end of the attempt."""
    writer = Writer()
    writer.goes_on.set()
    attempt = attempt_of(spark, writer, 1)
    outcome, interrupted = attempt.run(lambda: writer.write(None, None))
    attempt.look()
    attempt.interrupt()
    assert (outcome, interrupted, writer.cancelled) == (Delivered(1), False, False)


def test_who_was_interrupted_learns_it_even_if_it_succeeds(spark: SparkSession) -> None:
    writer = Writer()
    attempt = attempt_of(spark, writer, 1)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(attempt.run(lambda: writer.write(None, None))))
    thread.start()
    assert writer.begun.wait(60)
    threading.Event().wait(0.05)
    attempt.look()
    thread.join(60)
    assert found == [(Delivered(1), True)]
    assert writer.cancelled


def test_a_sink_without_room_gets_its_time_back(spark: SparkSession) -> None:
    writer = Writer()
    writer.waiting = True
    attempts = Attempts(Effort(deadline_ms=200), lambda _: False)
    attempt = Attempt(spark, writer, attempts)
    before = attempts.deadline
    threading.Event().wait(0.3)
    attempt.look()
    assert attempts.deadline >= before + 0.3
    assert not writer.cancelled
