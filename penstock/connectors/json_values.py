"""JSON objects in a column, decoded in Java by the same rules as in streams (`file/java/JsonValue.java`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.file.form import CORRUPT
from penstock.connectors.file.lines import CORRUPT_TYPE
from penstock.spark.catalyst import Catalyst
from penstock.spark.java_classes import java_class
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema
from penstock.streams.decode.epochs import UNITS

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType

    from penstock.specs.stream import Timestamps

SOURCE = Path(__file__).with_name("file") / "java" / "JsonValue.java"


def decoded(spark: SparkSession, value: Column, schema: StructType, timestamps: Timestamps) -> Column:
    """A struct with the columns of `schema`, and `$corrupt` with a value that does not fit; NULL for NULL."""
    from pyspark.sql.types import StructType

    catalyst = Catalyst(spark)
    unit = 0 if timestamps == "iso" else UNITS[timestamps][1]
    decoder = java_class(spark, SOURCE)(schema.json(), unit)
    corrupt = parse_schema(spark, f"{quote(CORRUPT)} {CORRUPT_TYPE}", field="schema")
    nullable = [type(field)(field.name, field.dataType, True) for field in schema.fields]
    made = catalyst.type_of(StructType([*nullable, *corrupt.fields]))
    return catalyst.column(catalyst.invoked(decoder, "decode", made, catalyst.expression(value)))
