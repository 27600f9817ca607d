"""A Spark source that is planned in this process and read in Java (`java/PlannedSource.java`).

Spark requests the end of a micro-batch and its division into tasks; a planner in this process responds, in
the thread of the query. So a flow needs no separate Python process for planning or reading.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("java") / "PlannedSource.java"
KAFKA = SOURCE.parent / "kafka" / "KafkaFrames.java"
"""Reads frames in Kafka; compiled separately, since it needs Kafka's client."""

KAFKA_WRITER = KAFKA.with_name("KafkaAppender.java")
"""Writes frames to Kafka."""

FORMAT = "penstock.PlannedSource"

Offset = dict[str, Any]


Slice = Mapping[str, Any]
"""A task, for `FrameReader.java`."""


class Planner(Protocol):
    """Plans the micro-batches of one streaming query."""

    def initial(self) -> Offset:
        """The offset at which a new checkpoint begins."""

    def latest(self, start: Offset) -> Offset | None:
        """The end of the next micro-batch; None if there is nothing to read."""

    def available_now(self) -> None:
        """Called once if the query reads only the existing events."""

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        """The tasks of a micro-batch."""

    def commit(self, end: Offset) -> None:
        """Called when everything before an offset is delivered."""

    def stop(self) -> None:
        """Called when the query ends."""


PLANNERS: dict[str, Callable[[Mapping[str, Any]], Planner]] = {}
"""Factories of the planners of streaming queries, by the `kind` of a reading."""

TABLES: dict[str, Callable[[Mapping[str, Any]], list[Slice]]] = {}
"""Functions that return the tasks of batch queries, by the `kind` of a reading."""

_connected: WeakKeyDictionary[Any, _Answers] = WeakKeyDictionary()
"""The objects that answer requests of a JVM, by its gateway."""

_lock = threading.Lock()


def options(spark: SparkSession, reading: Mapping[str, Any]) -> dict[str, str]:
    """The options of a source with the planner of the reading's `kind`; connects the JVM on first use."""
    from pyspark import java_gateway

    context: Any = spark.sparkContext
    with _lock:
        if context._gateway not in _connected:
            gateway: Any = java_gateway
            gateway.ensure_callback_server_started(context._gateway)
            answers = _connected[context._gateway] = _Answers()
            java_class(spark, SOURCE).connect(answers)
    return {"reading": json.dumps(reading)}


class _Answers:
    """Answers requests of `PlannedSource.java`, in JSON."""

    def __init__(self) -> None:
        self._planners: dict[str, Planner] = {}

    def apply(self, text: str) -> str:
        """The response to a request; an error is returned as text, for Java to raise."""
        from penstock.errors import Fatal, Retryable

        try:
            return json.dumps(self._answer(json.loads(text)))
        except (Fatal, Retryable) as error:
            kind = type(error)
            return json.dumps({"error": f"{kind.__module__}.{kind.__qualname__}: {error}"})
        except Exception:
            return json.dumps({"error": traceback.format_exc()})

    def _answer(self, asked: Mapping[str, str]) -> dict[str, Any]:
        reading = json.loads(asked["reading"])
        if not asked["id"]:  # a batch query
            return {"partitions": TABLES[reading["kind"]](reading)}
        if asked["id"] not in self._planners:
            self._planners[asked["id"]] = PLANNERS[reading["kind"]](reading)
        planner = self._planners[asked["id"]]
        match asked["question"]:
            case "initial":
                return {"offset": json.dumps(planner.initial())}
            case "latest":
                found = planner.latest(json.loads(asked["start"]))
                return {"offset": None if found is None else json.dumps(found)}
            case "available_now":
                planner.available_now()
            case "partitions":
                start, end = json.loads(asked["start"]), json.loads(asked["end"])
                return {"partitions": planner.partitions(start, end)}
            case "commit":
                planner.commit(json.loads(asked["end"]))
            case "stop":
                planner.stop()
                del self._planners[asked["id"]]
        return {}

    class Java:
        """The interface, for py4j."""

        implements = ("java.util.function.Function",)
