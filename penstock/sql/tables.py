"""Users' SQL over several tables that have an end: judged as in a pipeline, but free to remember rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pyspark.sql import DataFrame

from penstock.sql import analysed, guard
from penstock.sql.frames import VIEW_LOCK, parser
from penstock.sql.names import quote
from penstock.sql.problems import told


def query_tables(
    session: Any, text: str, known: Collection[str], open: Callable[[str], DataFrame], *, field: str = "sql"
) -> DataFrame:
    """The frame of a query over the `known` tables, of which `open` gives those that it names.

    Raises `Invalid` at `field` for SQL that is wrong or reaches outside of them.
    """
    by_name = {name.lower(): name for name in known}
    with told(field, (), row_by_row=False):
        plan = parser(session).parsePlan(text)
        named = guard.check_tables(session._jvm, plan, frozenset(by_name))
    tables = {name: open(by_name[name]) for name in sorted(named)}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    with told(field, columns, row_by_row=False):
        dataset = session._jvm.org.apache.spark.sql.classic.Dataset
        with VIEW_LOCK:
            try:
                for name, table in tables.items():
                    table.createOrReplaceTempView(quote(name))
                frame: Any = dataset.ofRows(session._jsparkSession, plan)
            finally:
                for name in tables:
                    session.catalog.dropTempView(name)
        analysed.check_tables(frame.queryExecution().analyzed(), tables)
        return DataFrame(frame, session)
