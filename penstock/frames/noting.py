"""Notes about events as Spark expressions, for steps that work on frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.frames.hidden import EVENT, NOTE_TYPE, visible
from penstock.sql.names import quote
from penstock.sql.rows import to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

NO_NOTE = f"CAST(NULL AS {NOTE_TYPE})"


def shown(df: DataFrame) -> DataFrame:
    """The visible columns of a frame, which user SQL may use."""
    from pyspark.sql import functions as f

    return df.select(*(f.col(quote(name)) for name in visible(df.columns)))


def shown_schema(df: DataFrame) -> StructType:
    """The schema of the visible columns."""
    from pyspark.sql.types import StructType

    return StructType([df.schema[name] for name in visible(df.columns)])


def row_of(df: DataFrame) -> Column:
    """An event as JSON."""
    from pyspark.sql import functions as f

    return to_json(*(f.col(quote(name)) for name in visible(df.columns)))


def noted(
    df: DataFrame,
    step: str,
    code: str,
    message: Column,
    *,
    kind: Literal["fault", "late"] = "fault",
    with_row: bool = True,
) -> Column:
    """The note of an event of `df` that a step rejects; without the event if it is only counted."""
    from pyspark.sql import functions as f

    row, event = (row_of(df), f.col(quote(EVENT))) if with_row else (f.lit(None), None)
    return note(kind, step, code, message=message, row=row, event=event)


def note(
    kind: str,
    step: str,
    code: str | Column,
    *,
    row: Column,
    message: Column | None = None,
    event: Column | None = None,
) -> Column:
    """A note about a rejected event: the reason, and the event."""
    from pyspark.sql import functions as f

    nothing = f.lit(None)
    values = {
        "kind": f.lit(kind),
        "step": f.lit(step),
        "code": f.lit(code),
        "message": nothing if message is None else message,
        "row": row,
        "event": nothing if event is None else event,
        "taken": nothing,
        "given": nothing,
        "ms": nothing,
    }
    return f.struct(*(value.alias(name) for name, value in values.items())).cast(NOTE_TYPE)
