"""Rows that do not fit the columns of their pipeline: kept with the reason, and dead letters when read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FAULT = "fault"
"""The stored column with the reason. Events that leave the source do not have it."""

FAULT_COLUMN = f"{FAULT} STRUCT<code: STRING, reason: STRING, row: STRING>"


def noted(df: DataFrame) -> DataFrame:
    """The events without that column, and a note for each row that does not fit."""
    from pyspark.sql import functions as f

    from penstock.frames.hidden import EVENT, NOTE
    from penstock.frames.noting import note
    from penstock.sql.names import quote

    fault, event = f.col(FAULT), f.col(quote(EVENT))
    made = note("fault", "source", fault["code"], message=fault["reason"], row=fault["row"], event=event)
    columns = (f.col(quote(name)) for name in df.columns if name != FAULT)
    return df.select(*columns, f.when(fault.isNotNull(), made).alias(NOTE))
