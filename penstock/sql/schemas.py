"""Schemas written as Spark DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def parse_schema(spark: SparkSession, ddl: str, *, field: str) -> StructType:
    """The columns that `ddl` declares; `Invalid` at `field` if it declares none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromDDL(ddl)
    except PySparkException as error:
        condition, parameters = error.getCondition(), error.getMessageParameters() or {}
        if condition == "UNSUPPORTED_DATATYPE":
            what = f"there is no type {parameters.get('typeName', '')}"
        else:
            near = parameters.get("error", "").strip("'")
            what = "not a list of columns" + (f": trouble at '{near}'" if near else "")
        raise Invalid(
            Problem(
                code="schema_syntax",
                message=f"{what} in {ddl!r}",
                path=field,
                hint="write columns as Spark DDL: id BIGINT, name STRING",
            )
        ) from None
    names = [f.name.lower() for f in schema.fields]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise Invalid(
            Problem(code="duplicate_column", message=f"the column '{twice[0]}' stands twice", path=field)
        )
    return schema
