"""Expressions that may raise, evaluated so that the event they raise on can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def tried(df: DataFrame, *columns: Column) -> Column:
    """A struct of these columns, or null for an event that any of them raises on."""
    from pyspark.sql import functions as f

    return or_null(df, f.struct(*columns))


def or_null(df: DataFrame, column: Column) -> Column:
    """The column, or null for an event that it raises on."""
    from pyspark.sql import Column

    session: Any = df.sparkSession
    untyped: Any = column
    utils = session._jvm.org.apache.spark.sql.classic.ExpressionUtils
    attempt = session._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utils.expression(untyped._jc))
    return Column(utils.column(attempt))
