"""Conversion of Spark's errors to problems: a code, a short message with the position, and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import Invalid, Problem, nearest
from penstock.spark.driver import java_errors

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

LISTED = 30
"""The maximum number of columns in a hint: a wide event must not fill the screen."""

ROW_BY_ROW_HINT = (
    "to combine the elements of an array inside one event use aggregate(), array_distinct() or array_sort()"
)

CODES = (
    ("INVALID_SQL_SYNTAX.UNSUPPORTED_SQL_STATEMENT", "sql_forbidden"),
    ("INVALID_SQL_SYNTAX", "sql_syntax"),
    ("PARSE_", "sql_syntax"),
    ("UNRESOLVED_COLUMN", "unknown_column"),
    ("UNRESOLVED_FIELD", "unknown_column"),
    ("FIELD_NOT_FOUND", "unknown_column"),
    ("UNRESOLVED_ROUTINE", "unknown_function"),
    ("TABLE_OR_VIEW_NOT_FOUND", "unknown_table"),
    ("DATATYPE_MISMATCH", "sql_type"),
    ("WRONG_NUM_ARGS", "sql_type"),
    ("NUM_COLUMNS_MISMATCH", "sql_type"),
    ("INCOMPATIBLE_COLUMN_TYPE", "sql_type"),
    ("INVALID_EXTRACT", "sql_type"),
    ("INVALID_SCHEMA", "sql_type"),
    ("UNSUPPORTED_DATATYPE", "sql_type"),
    ("CAST_", "sql_type"),
    ("MISSING_AGGREGATION", "stateful_sql"),
    ("MISSING_GROUP_BY", "stateful_sql"),
    ("CANNOT_PARSE_DATATYPE", "sql_type"),
)
"""Penstock's codes by prefix of Spark's error condition; the first match applies."""

NOT_A_QUERY = Problem(
    code="sql_forbidden",
    message="only a query is allowed here, not a command",
    hint="begin with SELECT, WITH or FROM",
)


def refuse(code: str, message: str, hint: str | None = None, at: tuple[int, int] | None = None) -> Invalid:
    """The error for rejected user SQL; the caller adds the path of the field."""
    return Invalid(Problem(code=code, message=message + place(at), hint=hint))


def place(at: tuple[int, int] | None) -> str:
    """The text for a line and a column."""
    return f" (line {at[0]}, column {at[1]})" if at else ""


def quoted_list(names: Sequence[str]) -> str:
    """Names for a hint, truncated after the first `LISTED`."""
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")


def unknown_column(column: str, columns: Sequence[str], at: tuple[int, int] | None = None) -> Problem:
    """The problem for an unknown column: its hint has the most similar column, and all columns."""
    lower = {c.lower(): c for c in columns}
    close = nearest(column, lower) or nearest(column.rpartition(".")[2], lower)
    if close == column.lower():
        hint = "the event has this column, but it is not visible here; "
    else:
        hint = f"did you mean '{lower[close]}'? " if close else ""
    return Problem(
        code="unknown_column",
        message=f"there is no column '{column}'{place(at)}",
        hint=f"{hint}columns: {quoted_list(columns)}",
    )


@contextmanager
def told(field: str, columns: Sequence[str], *, row_by_row: bool = True) -> Iterator[None]:
    """Convert every failure of Spark and every rejection to `Invalid` at `field`."""
    from pyspark.errors import PySparkException

    try:
        yield
    except Invalid as error:
        raise Invalid(*(at_field(p, field) for p in error.problems)) from None
    except PySparkException as error:
        raise Invalid(at_field(translate(error, columns, row_by_row=row_by_row), field)) from None
    except java_errors(RecursionError) as error:
        raise Invalid(at_field(_breakdown(error), field)) from None


def at_field(problem: Problem, field: str) -> Problem:
    """The problem with the path `field`, unless it already has a path."""
    return problem if problem.path else problem.model_copy(update={"path": field})


def translate(error: PySparkException, columns: Sequence[str], *, row_by_row: bool = True) -> Problem:
    """A Spark error as a problem: never with a plan or a stack trace."""
    condition = error.getCondition() or ""
    code = next((code for start, code in CODES if condition.startswith(start)), "sql_error")
    parameters = error.getMessageParameters() or {}
    found = re.search(r"line (\d+),? pos (\d+)", str(error))
    at = (int(found[1]), int(found[2]) + 1) if found else None
    if code == "unknown_column":
        if "fields" in parameters:
            columns = [_unquoted(c) for c in parameters["fields"].split(", ")]
        missing = parameters.get("objectName") or parameters.get("fieldName") or "?"
        return unknown_column(_unquoted(missing), columns, at)
    if code == "sql_forbidden":
        return NOT_A_QUERY
    if code == "stateful_sql" and not row_by_row:
        code = "sql_error"
    if code == "stateful_sql":
        message = "GROUP BY or an aggregate function is not possible: sql works row by row"
        return Problem(code=code, message=message, hint=ROW_BY_ROW_HINT)
    return Problem(code=code, message=_sentence(error) + place(at))


def _sentence(error: PySparkException) -> str:
    """Spark's message, without its code, its links and the text of the query."""
    text = error.getMessage() or str(error)
    text = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text).split("\n== SQL")[0].split(";\n")[0]
    text = re.sub(r"\s*SQLSTATE: \w+.*", "", text, flags=re.DOTALL)
    sentences = re.split(r"(?<=\.)\s+", " ".join(text.split()))
    return " ".join(s for s in sentences[:2] if "://" not in s).rstrip(".") or "Spark rejects this SQL"


def _breakdown(error: Exception) -> Problem:
    text = str(error)
    if isinstance(error, RecursionError) or "StackOverflowError" in text:
        return Problem(code="sql_error", message="this SQL is nested too deeply", hint="split it into steps")
    if ".parsePlan" in text:
        return NOT_A_QUERY  # some statements, such as INSERT OVERWRITE DIRECTORY, break Catalyst's own parser
    found = re.search(r"\[[A-Z_.]+\] (.*?)(?: SQLSTATE|\n|$)", text)
    return Problem(code="sql_error", message=found[1].rstrip(".") if found else "Spark rejects this SQL")


def _unquoted(name: str) -> str:
    return name.replace("`.`", ".").strip("`").replace("``", "`")
