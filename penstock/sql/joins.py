"""User-defined join conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.spark import plans
from penstock.spark.catalyst import Catalyst, resolved
from penstock.sql.frames import condition
from penstock.sql.problems import told
from penstock.sql.tries import or_null

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def join_condition(left: DataFrame, right: DataFrame, text: str, *, field: str) -> Column:
    """The condition of a join of two frames; NULL for events on which it fails.

    Raises `Invalid` at `field` if it is invalid, or has no equality between both sides: every event would
    have to be compared with every other.
    """
    from pyspark.sql import functions as f

    spark = Catalyst(left.sparkSession)
    both = left.select("*", *(f.lit(None).cast(c.dataType).alias(c.name) for c in right.schema.fields))
    condition(both, text, field=field)
    with told(field, both.columns):
        parts = list(_conjuncts(spark.parser().parseExpression(text)))
    made, keys = [], 0
    for part in parts:
        sides = _sides(part, spark)
        if sides and (_splits(sides, left, right) or _splits(sides, right, left)):
            keys += 1
            made.append(or_null(left, sides[0]) == or_null(left, sides[1]))
        else:
            made.append(or_null(left, spark.column(part)))
    if not keys:
        message = "no equality condition between both sides"
        hint = f"add an equality condition: id = {right.columns[0]}.id AND …"
        raise Invalid(Problem(code="join_without_key", message=message, path=field, hint=hint))
    whole = made[0]
    for each in made[1:]:
        whole &= each
    return whole


def _conjuncts(expression: Any) -> Iterator[Any]:
    if plans.name(expression) == "And":
        yield from _conjuncts(expression.left())
        yield from _conjuncts(expression.right())
    else:
        yield expression


def _sides(expression: Any, spark: Catalyst) -> tuple[Column, Column] | None:
    if plans.name(expression) != "EqualTo":
        return None
    return spark.column(expression.left()), spark.column(expression.right())


def _splits(sides: tuple[Column, Column], one: DataFrame, other: DataFrame) -> bool:
    """Whether the first expression uses only columns of `one`, and the second only columns of `other`."""
    return _of(one, sides[0]) and _of(other, sides[1])


def _of(df: DataFrame, column: Column) -> bool:
    from pyspark.errors import AnalysisException

    try:
        frame = df.select(column)
    except AnalysisException:
        return False
    (expression,) = plans.elements(resolved(frame).projectList())
    return not expression.references().isEmpty()  # a constant belongs to neither
