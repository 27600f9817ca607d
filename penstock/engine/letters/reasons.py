"""The reasons why a SQL step fails on events: a batch only reports the failure, so the step is run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import UNFIT
from penstock.engine.letters.notes import Note
from penstock.engine.plan.flow import Part
from penstock.engine.plan.plan import Plan
from penstock.engine.plan.steps import SQL_FAILED
from penstock.engine.runtime.failures import failure_of
from penstock.processors.base import Processor, RowProcessor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

EXPLAINED = 3
"""The maximum number of events per step and batch for which the exact reason is determined."""

SOURCE = "source"

UNEXPLAINED = "an expression of this step fails on this event"


def inputs_of(plan: Plan) -> Mapping[str, StructType]:
    """The visible input columns of each processor. The plan has to cover the whole flow."""
    columns = [schema for _, schema in plan.columns]
    return dict(zip([part.id for part in plan.flow.processors], columns, strict=False))


class Reasons:
    """Determines why events of one batch have failed."""

    def __init__(self, plan: Plan, spark: SparkSession) -> None:
        self._plan, self._spark = plan, spark
        self._known: Counter[str] = Counter()

    def explained(self, faults: Sequence[Note]) -> list[Note]:
        """The notes, with reasons added to notes of SQL steps, and of the source if they have none."""
        return [self._explained(note) for note in faults]

    def _explained(self, note: Note) -> Note:
        if note.step == SOURCE and note.message is None:
            code, message = self._plan.flow.source.component.reason(note.row or "") or (note.code, UNFIT)
            return replace(note, code=code, message=message)
        if note.code != SQL_FAILED:
            return note
        self._known[note.step] += 1
        code, message = SQL_FAILED, UNEXPLAINED
        if self._known[note.step] <= EXPLAINED:
            part = next(part for part in self._plan.flow.processors if part.id == note.step)
            schema = inputs_of(self._plan)[note.step]
            code, message = reason(part, schema, note.row or "{}", self._spark)
        return replace(note, code=code, message=message)


def reason(part: Part[Processor], schema: StructType, row: str, spark: SparkSession) -> tuple[str, str]:
    """The code and the message with which a step fails on a single event."""
    from pyspark.sql import functions as f

    # A local table: Spark computes a projection of it while it plans, without a job.
    given = spark.createDataFrame(pa.table({"given": [row]}))
    one = given.select(f.from_json("given", schema).alias("event")).select("event.*")
    try:
        if isinstance(part.component, RowProcessor):
            part.component.apply(one).collect()
    except Exception as error:
        problem = failure_of(error).problem
        return problem.code, problem.message
    return SQL_FAILED, UNEXPLAINED
