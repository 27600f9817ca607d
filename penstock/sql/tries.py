"""Expressions that may fail, evaluated so that the failing event can be identified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.catalyst import Catalyst

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def tried(df: DataFrame, *columns: Column) -> Column:
    """A struct of these columns, or null for an event on which any of them fails."""
    from pyspark.sql import functions as f

    return or_null(df, f.struct(*columns))


def or_null(df: DataFrame, column: Column) -> Column:
    """The column, or null for an event on which it fails."""
    spark = Catalyst(df.sparkSession)
    return spark.column(spark.tried(spark.expression(column)))
