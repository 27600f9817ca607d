"""Rows that don't match the schema: stored with the reason, and read as dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FAULT = "fault"
"""The stored column with the reason. Events emitted by the source don't have it."""

FAULT_COLUMN = f"{FAULT} STRUCT<code: STRING, reason: STRING, row: STRING>"


def noted(df: DataFrame) -> DataFrame:
    """The events without the column `fault`, with a note for each row that doesn't match the schema."""
    from pyspark.sql import functions as f

    from penstock.frames.hidden import EVENT, NOTE
    from penstock.frames.noting import note
    from penstock.sql.names import quote

    fault, event = f.col(FAULT), f.col(quote(EVENT))
    made = note("fault", "source", fault["code"], message=fault["reason"], row=fault["row"], event=event)
    columns = (f.col(quote(name)) for name in df.columns if name != FAULT)
    return df.select(*columns, f.when(fault.isNotNull(), made).alias(NOTE))
