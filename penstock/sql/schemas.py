"""Schemas written as Spark DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def parse_schema(spark: SparkSession, ddl: str, *, field: str) -> StructType:
    """The columns that `ddl` declares; raises `Invalid` at `field` if it is invalid."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromDDL(ddl)
        assert isinstance(schema, StructType)
    except PySparkException as error:
        raise Invalid(_syntax(_trouble(error), ddl, field)) from None
    names = [f.name.lower() for f in schema.fields]
    if not names:
        raise Invalid(_syntax("no column", ddl, field))
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise Invalid(Problem(code="duplicate_column", message=f"duplicate column '{twice[0]}'", path=field))
    return schema


def _trouble(error: PySparkException) -> str:
    parameters = error.getMessageParameters() or {}
    if error.getCondition() == "UNSUPPORTED_DATATYPE":
        return f"there is no type {parameters.get('typeName', '')}"
    near = parameters.get("error", "").strip("'")
    return "not a list of columns" + (f": syntax error at '{near}'" if near else "")


def _syntax(what: str, ddl: str, field: str) -> Problem:
    hint = "declare columns as Spark DDL: id BIGINT, name STRING"
    return Problem(code="schema_syntax", message=f"{what} in {ddl!r}", path=field, hint=hint)
