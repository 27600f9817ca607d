"""Files of JSON lines, read by Penstock's own Spark format in Java (`java/JsonLines.java`).

This format accepts and rejects the same lines as the decoder of streams, which is in Python and would
dominate the processor time here. That decoder then finds the reason for a rejected line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import UNFIT
from penstock.connectors.file.form import CORRUPT, ORDER
from penstock.connectors.file.records import Malformed, Rule
from penstock.frames.faults import Fault
from penstock.frames.hidden import NOTE
from penstock.spark.java_classes import java_class
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema
from penstock.streams.decode.epochs import UNITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from penstock.specs.stream import Timestamps

SOURCE = Path(__file__).with_name("java") / "JsonLines.java"
FORMAT = "penstock.JsonLines"
CORRUPT_TYPE = "STRUCT<code: STRING, message: STRING, row: STRING>"


def reader(
    given: DataStreamReader, spark: SparkSession, schema: StructType, timestamps: Timestamps
) -> DataStreamReader:
    """A reader of the declared columns and of `$corrupt`, which has a line that doesn't match the schema."""
    from pyspark.sql.types import StructType

    java_class(spark, SOURCE)
    unit = 0 if timestamps == "iso" else UNITS[timestamps][1]
    corrupt = parse_schema(spark, f"{quote(CORRUPT)} {CORRUPT_TYPE}", field="schema")
    read = StructType([*schema.fields, *corrupt.fields])
    return given.format(FORMAT).options(columns=schema.json(), unit=str(unit)).schema(read)


def events(df: DataFrame, schema: StructType, rule: Rule, malformed: Malformed) -> DataFrame:
    """The events, and notes for lines that don't match the schema."""
    from pyspark.sql import functions as f

    columns = [f.col(quote(name)) for name in schema.names]
    note = noted(f.col(quote(CORRUPT)), rule, malformed).alias(NOTE)
    return df.select(*columns, note, f.col(quote(ORDER)))


def noted(corrupt: Column, rule: Rule, malformed: Malformed, event: Column | None = None) -> Column:
    """The note for a record, from its `$corrupt`; NULL if the record matches the schema."""
    from pyspark.sql import functions as f

    from penstock.frames.noting import NO_NOTE, note

    if malformed == "nulls":
        return f.expr(NO_NOTE)
    message = corrupt["message"] if malformed == "dead_letter" else _refused(rule)(corrupt)
    made = note("fault", "source", corrupt["code"], message=message, row=corrupt["row"], event=event)
    return f.when(corrupt.isNotNull(), made)


def _refused(rule: Rule) -> Callable[[Column], Column]:
    """A function of `$corrupt` that fails with the reason why a line doesn't match the schema."""
    from pyspark.sql.pandas.functions import arrow_udf

    def refuse(lines: pa.Array) -> pa.Array:
        for line in lines.drop_null().to_pylist():
            found = line["code"], line["message"] or UNFIT
            code, reason = rule.reason(line["row"]) or found
            raise Fault(code, f"{reason}, in {line['row'][:200]}")
        return pa.nulls(len(lines), pa.string())

    udf: Any = arrow_udf  # its overloads have no function of one array
    made: Callable[[Column], Column] = udf(refuse, "string")
    return made
