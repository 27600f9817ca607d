"""User SQL on DataFrames: parsed, checked, analyzed and checked again; nothing is run.

The text goes through Catalyst's own parser and not through `spark.sql` or `expr`: these replace `${env:NAME}`
and `${spark.some.setting}` in the text with the worker's secrets before they parse it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.spark import plans
from penstock.spark.catalyst import Catalyst, resolved
from penstock.sql import analysed, guard
from penstock.sql.problems import told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOLERANT = {"sum": "try_sum", "avg": "try_avg", "mean": "try_avg"}
"""Aggregates that may overflow their type, and the variants that are then NULL."""

VIEW_LOCK = threading.Lock()
"""Held while a view of the input exists, so that flows planned concurrently never see each other's views."""


def run_query(df: DataFrame, text: str, *, field: str = "query", table: str = "input") -> DataFrame:
    """The frame of a query over `df`, which is the only table of the query, with the name `table`.

    Raises `Invalid` at `field` for SQL that is invalid, reaches outside the event or needs state.
    """
    spark = Catalyst(df.sparkSession)
    with told(field, df.columns):
        plan = spark.parser().parsePlan(text)
        guard.check_query(spark, plan, table)
        with VIEW_LOCK:
            df.createOrReplaceTempView(table)
            try:
                result = spark.frame(plan)
            finally:
                df.sparkSession.catalog.dropTempView(table)
        analysed.check_query(spark, resolved(result), table)
    twice = [name for name, count in Counter(c.lower() for c in result.columns).items() if count > 1]
    if twice:
        message = f"the result has more than one column '{twice[0]}'"
        hint = "name the columns instead of *, or rename one of them with AS"
        raise Invalid(Problem(code="duplicate_column", message=message, path=field, hint=hint))
    return result


def column(df: DataFrame, text: str, *, field: str) -> Column:
    """The column of an expression over `df`'s columns.

    Raises `Invalid` at `field` for an expression that is invalid or does not compute one value per event.
    """
    spark = Catalyst(df.sparkSession)
    with told(field, df.columns):
        expression = spark.parser().parseExpression(text)
        guard.check_expression(spark, expression)
        made = spark.column(expression)
        analysed.check_column(spark, resolved(df.select(made.alias("value"))))
    return made


def condition(df: DataFrame, text: str, *, field: str) -> Column:
    """The column of a condition: an expression that is true or false for each event, or NULL."""
    from pyspark.sql.types import BooleanType

    made = column(df, text, field=field)
    kind = df.select(made).schema[0].dataType
    if not isinstance(kind, BooleanType):
        message = f"the condition must be true or false, but it is {kind.simpleString()}"
        hint = "compare it with something, such as amount > 0"
        raise Invalid(Problem(code="sql_type", message=message, path=field, hint=hint))
    return made


def aggregate(df: DataFrame, text: str, *, field: str) -> Column:
    """The column of an expression that aggregates many events, such as `sum(amount) / count(*)`.

    Raises `Invalid` at `field` if it is invalid, or cannot be computed incrementally.
    """
    spark = Catalyst(df.sparkSession)
    with told(field, df.columns, row_by_row=False):
        expression = spark.parser().parseExpression(text)
        guard.check_expression(spark, expression)
        plan = resolved(df.agg(spark.column(expression).alias("value")))
        analysed.check_aggregate(spark, plan)
    (named,) = plans.elements(plan.aggregateExpressions())
    return spark.column(spark.replaced(named.child(), lambda call: _checked(call, spark)))


def _checked(call: Any, spark: Catalyst) -> Any | None:
    """A sum or an average that on overflow fails when its result is read, not when it is updated.

    Spark would fail in the middle of a batch, where no enclosing expression can catch the failure.
    """
    from pyspark.sql import functions as f

    if plans.name(call) != "AggregateExpression":
        return None
    function, condition = call.aggregateFunction(), call.filter()
    tolerant = TOLERANT.get(str(function.prettyName()))
    if tolerant is None or function.dataType().typeName() in ("float", "double"):
        return call
    value = spark.column(function.child())
    if condition.isDefined():
        value = f.when(spark.column(condition.get()), value)
    result = getattr(f, tolerant)(value)
    overflown = (f.count(value) > 0) & result.isNull()
    message = f.raise_error(f.lit(f"{function.prettyName()} is too large for its type"))
    return spark.expression(f.when(overflown, message).otherwise(result))


def aggregated(df: DataFrame, aggregates: Sequence[Column]) -> list[Column]:
    """The expressions that aggregates compute for each event before they combine them, and that may fail."""
    spark = Catalyst(df.sparkSession)
    return [spark.column(found) for found in analysed.aggregate_inputs(resolved(df.agg(*aggregates)))]
