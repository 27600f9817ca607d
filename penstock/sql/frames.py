"""Users' SQL on DataFrames: parsed, judged, analysed and judged again; nothing is run.

The text goes through Catalyst's own parser and not through `spark.sql` or `expr`: those replace
`${env:NAME}` and `${spark.some.setting}` in the text by the worker's secrets before they parse it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.sql import analysed, guard
from penstock.sql.problems import told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VIEW_LOCK = threading.Lock()
"""Held while a view of the input exists, so that flows compiled at once never see each other's."""


def run_query(df: DataFrame, text: str, *, field: str = "query", table: str = "input") -> DataFrame:
    """The frame of a query over `df`, which it sees as `table` and as nothing else.

    Raises `Invalid` at `field` for SQL that is wrong, reaches outside the event or needs state.
    """
    from pyspark.sql import DataFrame

    session: Any = df.sparkSession
    with told(field, df.columns):
        dataset = session._jvm.org.apache.spark.sql.classic.Dataset
        plan = parser(session).parsePlan(text)
        guard.check_query(session._jvm, plan, table)
        with VIEW_LOCK:
            df.createOrReplaceTempView(table)
            try:
                frame: Any = dataset.ofRows(session._jsparkSession, plan)
            finally:
                session.catalog.dropTempView(table)
        analysed.check_query(session._jvm, frame.queryExecution().analyzed(), table)
        result = DataFrame(frame, session)
    twice = [name for name, count in Counter(c.lower() for c in result.columns).items() if count > 1]
    if twice:
        message = f"the result has more than one column '{twice[0]}'"
        hint = "name the columns instead of *, or give one of them another name with AS"
        raise Invalid(Problem(code="duplicate_column", message=message, path=field, hint=hint))
    return result


def column(df: DataFrame, text: str, *, field: str) -> Column:
    """The column of an expression over `df`'s columns.

    Raises `Invalid` at `field` for an expression that is wrong or does not make one value from one event.
    """
    from pyspark.sql import Column

    session: Any = df.sparkSession
    with told(field, df.columns):
        expression = parser(session).parseExpression(text)
        guard.check_expression(session._jvm, expression)
        made = Column(session._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
        frame: Any = df.select(made.alias("value"))
        analysed.check_column(frame._jdf.queryExecution().analyzed())
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
    """The column of an expression that makes one value of many events, such as `sum(amount) / count(*)`.

    Raises `Invalid` at `field` for one that is wrong, or that cannot be computed as events come in.
    """
    from pyspark.sql import Column

    session: Any = df.sparkSession
    with told(field, df.columns, row_by_row=False):
        expression = parser(session).parseExpression(text)
        guard.check_expression(session._jvm, expression)
        made = Column(session._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
        frame: Any = df.agg(made.alias("value"))
        analysed.check_aggregate(frame._jdf.queryExecution().analyzed())
    return made


def aggregated(df: DataFrame, aggregates: Sequence[Column]) -> list[Column]:
    """What aggregates compute of each event before they put it together, as far as it may raise."""
    from pyspark.sql import Column

    session: Any = df.sparkSession
    frame: Any = df.agg(*aggregates)
    utils = session._jvm.org.apache.spark.sql.classic.ExpressionUtils
    found = analysed.aggregate_inputs(frame._jdf.queryExecution().analyzed())
    return [Column(utils.column(expression)) for expression in found]


def parser(session: Any) -> Any:
    """Catalyst's own parser under the settings of a session."""
    # The parser takes its settings, such as ANSI mode, from the thread's active session.
    session._jvm.SparkSession.setActiveSession(session._jsparkSession)
    return session._jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
