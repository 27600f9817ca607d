"""A source of Spark that is planned in this process and read in Java (`java/PlannedSource.java`).

Spark asks where a micro-batch ends and how it is divided into tasks; a planner here answers, in the thread of
the query. So a flow needs no Python process of its own to be planned, and none to be read.
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
"""Reads frames in Kafka; compiled apart, since it needs Kafka's client."""

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
        """Called once if the query is to read only what there is now."""

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        """The tasks of a micro-batch."""

    def commit(self, end: Offset) -> None:
        """Called when everything before an offset is delivered."""

    def stop(self) -> None:
        """Called when the query ends."""


PLANNERS: dict[str, Callable[[Mapping[str, Any]], Planner]] = {}
"""By the `kind` of a reading: makes the planner of a streaming query."""

TABLES: dict[str, Callable[[Mapping[str, Any]], list[Slice]]] = {}
"""By the `kind` of a reading: the tasks of a batch query."""

_connected: WeakKeyDictionary[Any, _Answers] = WeakKeyDictionary()
"""By gateway to a JVM: the object that answers its questions."""

_lock = threading.Lock()


def options(spark: SparkSession, reading: Mapping[str, Any]) -> dict[str, str]:
    """The options of a source that is read by the planner of a kind; connects the JVM on first use."""
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
    """Answers the questions of `PlannedSource.java`: JSON for JSON."""

    def __init__(self) -> None:
        self._planners: dict[str, Planner] = {}

    def apply(self, text: str) -> str:
        """The answer to a question; an error as its text, for Java to raise."""
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
        """What py4j shows to Java."""

        implements = ("java.util.function.Function",)
