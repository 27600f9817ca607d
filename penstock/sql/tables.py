"""User SQL over several finite tables: checked as in a pipeline, but stateful constructs are allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from penstock.spark.catalyst import Catalyst, resolved
from penstock.sql import analysed, guard
from penstock.sql.frames import VIEW_LOCK
from penstock.sql.names import quote
from penstock.sql.problems import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def query_tables(
    session: Any,
    text: str,
    known: Collection[str],
    frame_of: Callable[[str], DataFrame],
    *,
    field: str = "sql",
) -> DataFrame:
    """The frame of a query over the `known` tables; `frame_of` returns the tables that it names.

    Raises `Invalid` at `field` for SQL that is invalid or reaches outside these tables.
    """
    by_name = {name.lower(): name for name in known}
    spark = Catalyst(session)
    with told(field, (), row_by_row=False):
        plan = spark.parser().parsePlan(text)
        named = guard.check_tables(spark, plan, frozenset(by_name))
    tables = {name: frame_of(by_name[name]) for name in sorted(named)}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    with told(field, columns, row_by_row=False):
        with VIEW_LOCK:
            try:
                for name, table in tables.items():
                    table.createOrReplaceTempView(quote(name))
                frame = spark.frame(plan)
            finally:
                for name in tables:
                    session.catalog.dropTempView(name)
        analysed.check_tables(spark, resolved(frame), tables)
        return frame
