"""Steps over frames on a handful of events: with the hidden column, and with what they make of them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.frames.hidden import EVENT, NOTE
from penstock.frames.known import event_of
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.processors.base import FrameProcessor, Stage
from penstock.specs.policies import Batch
from penstock.streams.home import StreamPlace


def with_event(df: DataFrame, **known: str) -> DataFrame:
    """The frame with the hidden column, of which some fields are given as SQL over the columns."""
    return df.withColumn(EVENT, event_of(**{name: f.expr(text) for name, text in known.items()}))


def stage(sinks: tuple[str, ...] = (), **known: Any) -> Stage:
    """Where a step named `step` is planned."""

    def nowhere(id: str) -> StreamPlace:
        raise LookupError(id)

    site = known.pop("site", Site("pipeline:test:1", 0, nowhere, "test.in", policy=UNRESTRICTED))
    return Stage("step", site, Batch(), sinks, **known)


def through(step: FrameProcessor, df: DataFrame, where: Stage) -> DataFrame:
    """What a step makes of a frame, without its notes."""
    for prepare in (step.sift, step.prepare):
        df = _without_notes(prepare(df, where))
    return step.apply(df, where).drop(NOTE)


def applied(
    step: FrameProcessor, df: DataFrame, sinks: tuple[str, ...] = (), **known: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The events that come out of a step, and its notes."""
    where = stage(sinks, testing=True, **known)
    early: list[dict[str, Any]] = []
    for prepare in (step.sift, step.prepare):
        df = prepare(df, where)
        if NOTE in df.columns:
            early += [row[NOTE] for row in _rows(df) if row[NOTE]]
            df = _without_notes(df)
    rows = _rows(step.apply(df, where))
    notes = [note for row in rows if (note := row.get(NOTE))]
    events = [{k: v for k, v in row.items() if k != NOTE} for row in rows if row.get(NOTE) is None]
    return events, early + notes


def _without_notes(df: DataFrame) -> DataFrame:
    return df.filter(f"`{NOTE}` IS NULL").drop(NOTE) if NOTE in df.columns else df


def _rows(df: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]
