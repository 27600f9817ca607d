"""Why a step in SQL fails on an event. In a batch it only tells that it does: here it is asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.failures import failure_of
from penstock.engine.flow import Part
from penstock.engine.notes import Note
from penstock.engine.plan import Plan
from penstock.engine.steps import SQL_FAILED
from penstock.processors.base import Processor, RowProcessor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

EXPLAINED = 3
"""Of so many events of a step and batch the exact reason is found out."""

SOURCE, UNFIT = "source", "the record does not fit the schema"

UNEXPLAINED = "an expression of this step raises on this event"


def inputs_of(plan: Plan) -> Mapping[str, StructType]:
    """By processor: the visible columns that it is given. The plan has to be that of the whole flow."""
    columns = [schema for _, schema in plan.columns]
    return dict(zip([part.id for part in plan.flow.processors], columns, strict=False))


def explained(faults: Sequence[Note], plan: Plan, spark: SparkSession) -> list[Note]:
    """The notes with the reasons of those that come from SQL, or from the source without one."""
    known: dict[str, int] = {}
    told = []
    for note in faults:
        if note.step == SOURCE and note.message is None:
            code, message = plan.flow.source.component.reason(note.row or "") or (note.code, UNFIT)
            told.append(replace(note, code=code, message=message))
            continue
        if note.code != SQL_FAILED:
            told.append(note)
            continue
        known[note.step] = known.get(note.step, 0) + 1
        code, message = SQL_FAILED, UNEXPLAINED
        if known[note.step] <= EXPLAINED:
            part = next(part for part in plan.flow.processors if part.id == note.step)
            code, message = reason(part, inputs_of(plan)[note.step], note.row or "{}", spark)
        told.append(replace(note, code=code, message=message))
    return told


def reason(part: Part[Processor], schema: StructType, row: str, spark: SparkSession) -> tuple[str, str]:
    """The code and the message with which a step fails on an event, alone and not caught."""
    from pyspark.sql import functions as f

    one = spark.range(1).select(f.from_json(f.lit(row), schema).alias("event")).select("event.*")
    try:
        if isinstance(part.component, RowProcessor):
            part.component.apply(one).collect()
    except Exception as error:
        problem = failure_of(error).problem
        return problem.code, problem.message
    return SQL_FAILED, UNEXPLAINED
