"""What a batch has to tell beside its events: figures of each step, faults, late events, lines for the log.

Spark collects it while the batch is computed (`observe`), and it is read in `foreachBatch`, before the
checkpoint moves: what could not be processed is safe before it is passed (invariants 5 and 7).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.connectors.python_source import BEGIN
from penstock.processors.join import LATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

SOURCE = "$source"


@dataclass(frozen=True)
class Note:
    """A row that left the flow, or something said by a step."""

    kind: str
    step: str
    code: str | None = None
    message: str | None = None
    row: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict)
    taken: int = 0
    given: int = 0
    ms: float = 0.0


@dataclass(frozen=True)
class Observed:
    """All that a batch had to tell."""

    taken: int
    """Events that came from the source."""
    given: Mapping[str, int]
    """By step, or by the last of several neighbours in Python: events that went on."""
    notes: tuple[Note, ...]
    latest: Mapping[str, int] = field(default_factory=dict)
    """The latest time of its events in milliseconds, by input, if the flow has a watermark."""
    late: Mapping[str, int] = field(default_factory=dict)
    """By step: events of another stream than the flow's own that were too late."""


def watch(df: DataFrame, name: str, figures: list[Column]) -> DataFrame:
    """Take figures of a streaming frame."""
    return df.observe(name, *figures)


class Watcher:
    """Takes figures of frames that are no streams. Good for one action on the last frame."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._make = Observation
        self._seen: dict[str, Any] = {}

    def __call__(self, df: DataFrame, name: str, figures: list[Column]) -> DataFrame:
        self._seen[name] = self._make()
        return df.observe(self._seen[name], *figures)

    def observed(self) -> Observed:
        """What was seen, once the action has ended."""
        return _observed({name: each.get for name, each in self._seen.items()})


def reset(query: StreamingQuery) -> None:
    """Forget what was seen of the batch in hand: it is about to be computed anew."""
    _execution(query).executedPlan().resetMetrics()


def observed(query: StreamingQuery) -> Observed:
    """What was seen of the batch in hand, once an action on it has ended."""
    from pyspark import SparkContext
    from pyspark.serializers import CPickleSerializer

    jvm: Any = SparkContext._jvm
    pickled: Any = CPickleSerializer()
    rows: dict[str, Mapping[str, Any]] = {}
    metrics = _execution(query).observedMetrics().iterator()
    while metrics.hasNext():
        pair = metrics.next()
        rows[pair._1()] = pickled.loads(jvm.PythonSQLUtils.toPyRow(pair._2())).asDict()
    return _observed(rows)


def watermark_ms(query: StreamingQuery) -> int:
    """The watermark of the current batch; 0 until there is one."""
    return int(_execution(query).offsetSeqMetadata().batchWatermarkMs())


def span(query: StreamingQuery) -> tuple[int | None, int | None]:
    """From which offset on up to which (exclusive) the batch in hand reads its source, if it is a stream."""
    stream: Any = query._jsq.streamingQuery()
    source = stream.sources().head()
    first, next = _offset(stream.committedOffsets(), source), _offset(stream.availableOffsets(), source)
    return (next if BEGIN in next else first).get("offset"), next.get("offset")


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery().lastExecution()


def _offset(offsets: Any, source: Any) -> Mapping[str, Any]:
    found = offsets.get(source)
    value = None if found.isEmpty() else json.loads(found.get().json())
    return value if isinstance(value, dict) else {}


def _observed(rows: Mapping[str, Mapping[str, Any]]) -> Observed:
    given = {name: int(row["given"]) for name, row in rows.items() if name != SOURCE and "given" in row}
    latest = {name: int(row["latest"]) for name, row in rows.items() if row.get("latest") is not None}
    late = {name.removeprefix(LATE): int(row["late"]) for name, row in rows.items() if "late" in row}
    notes = tuple(_note(each) for row in rows.values() for each in row.get("notes") or ())
    taken = int(rows[SOURCE]["given"]) if SOURCE in rows else 0
    return Observed(taken, given, notes, latest, late)


def _note(row: Row) -> Note:
    values = row.asDict(recursive=True)
    event = values.pop("event") or {}
    return Note(event=event, **{name: value for name, value in values.items() if value is not None})
