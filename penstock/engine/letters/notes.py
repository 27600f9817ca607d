"""Reports of a batch: figures of each step, faults, late events, and lines for the log.

Spark collects the figures while the batch is computed (`observe`), and its tasks write the notes to a spool.
Both are read in `foreachBatch`, before the checkpoint moves: events that could not be processed are stored
before their offsets are committed (invariants 5 and 7).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.frames.hidden import NOTE
from penstock.processors.join import LATE
from penstock.redaction import redacted
from penstock.spark.spool import lines, spooled
from penstock.sql.names import quote
from penstock.sql.rows import to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SOURCE = "$source"


@dataclass(frozen=True)
class Note:
    """A row that left the flow, or a log line of a step."""

    kind: str
    step: str
    code: str | None = None
    message: str | None = None
    row: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict)
    taken: int = 0
    given: int = 0
    ms: float = 0.0

    def __post_init__(self) -> None:
        if self.message is not None:
            object.__setattr__(self, "message", redacted(self.message))


@dataclass(frozen=True)
class Report:
    """The report of a batch: figures and notes."""

    taken: int
    """Events read from the source."""
    given: Mapping[str, int]
    """Output events by step; for adjacent Python steps only of the last one."""
    latest: Mapping[str, int]
    """The latest time of its events in milliseconds, by input, if the flow has a watermark."""
    late: Mapping[str, int]
    """Late events by step, of streams other than the flow's own."""
    spool: Path
    """The directory of the notes."""

    @classmethod
    def of(
        cls, figures: Mapping[str, Mapping[str, Any]], spool: Path, known: Mapping[str, int] | None = None
    ) -> Report:
        """The report of a computed batch; `known` has the counts that the query did not observe."""
        given = {name: int(row["given"]) for name, row in figures.items() if "given" in row}
        given |= known or {}
        latest = {name: int(row["latest"]) for name, row in figures.items() if row.get("latest") is not None}
        late = {name.removeprefix(LATE): int(row["late"]) for name, row in figures.items() if "late" in row}
        return cls(given.pop(SOURCE, 0), given, latest, late, spool)

    def notes(self) -> Iterator[Note]:
        """The notes, as an iterator: there may be one for each event."""
        return notes_in(self.spool)


def notes_in(spool: Path) -> Iterator[Note]:
    """The notes in a spool."""
    return map(_note, lines(spool))


class Watch:
    """Removes the notes from the frames of a plan, and spools them."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def figures(self, df: DataFrame, name: str, figures: list[Column]) -> DataFrame:
        """The frame; a subclass may observe figures of all its rows under a name."""
        return df

    def events(self, noted: DataFrame) -> DataFrame:
        """The rows without a note; the notes go to the spool."""
        from pyspark.sql import functions as f

        note = f.col(quote(NOTE))
        return spooled(noted, note.isNotNull(), to_json(note.alias(NOTE)), next(self._numbers)).drop(NOTE)


class StreamWatch(Watch):
    """Also observes the figures of a streaming query, except those that are known otherwise.

    Spark computes all columns of all rows up to the point where it observes them, so it cannot prune columns
    and rows that are not needed afterwards.
    """

    def __init__(self, known: Container[str] = ()) -> None:
        super().__init__()
        self._known = known

    def figures(self, df: DataFrame, name: str, figures: list[Column]) -> DataFrame:
        return df if name in self._known else df.observe(name, *figures)


def _note(line: str) -> Note:
    values = json.loads(line)[NOTE]
    event = values.pop("event", None) or {}
    if "time" in event:
        event["time"] = datetime.fromisoformat(event["time"])
    return Note(event=event, **values)
