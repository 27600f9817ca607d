"""Values of messages as events: JSON objects with columns, text, or bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.connectors.file.form import CORRUPT
from penstock.frames.hidden import NOTE
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from penstock.connectors.file.records import Malformed, Rule
    from penstock.specs.stream import Timestamps

ValueFormat = Literal["json", "text", "bytes"]

RAW = {"text": "STRING", "bytes": "BINARY"}


def decoded_value(df: DataFrame, schema: StructType, timestamps: Timestamps) -> Column:
    """The column `value` as a struct of `schema` and `$corrupt`, decoded by the same rules as in streams."""
    from pyspark.sql import functions as f

    from penstock.connectors.json_values import decoded

    return decoded(df.sparkSession, f.col("value").cast("binary"), schema, timestamps)


def with_columns(
    read: DataFrame,
    schema: StructType,
    rule: Rule,
    malformed: Malformed,
    event: Column,
    beside: list[Column],
) -> DataFrame:
    """The columns of a decoded `value`, further columns, and notes for values that do not fit."""
    from pyspark.sql import functions as f

    from penstock.connectors.file.lines import noted

    columns = [f.col(quote("value", name)).alias(name) for name in schema.names]
    note = noted(f.col(quote("value", CORRUPT)), rule, malformed, event)
    if (lacking := _lacking(schema, event)) is not None and malformed != "nulls":
        note = f.coalesce(note, f.when(f.col("value").isNull(), lacking))
    return read.select(*columns, *beside, event, note.alias(NOTE))


def _lacking(schema: StructType, event: Column) -> Column | None:
    """The note for a message without a value, if a column is required."""
    from pyspark.sql import functions as f

    from penstock.frames.noting import note

    required = next((field.name for field in schema.fields if not field.nullable), None)
    if required is None:
        return None
    message = f.lit(f"column '{required}' is missing: the record has no value")
    return note("fault", "source", "missing_field", message=message, row=f.lit("null"), event=event)
