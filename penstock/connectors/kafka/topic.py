"""The topic of an event: a fixed name, or text with `{column}` in it."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column

VALID = r"^[a-zA-Z0-9._-]{1,249}$"
"""Names that Kafka accepts. It also refuses `.` and `..`."""


def columns_of(template: str) -> list[str]:
    """The columns that a template names; ValueError if it is malformed."""
    found = []
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is not None and (not name or spec or conversion):
            raise ValueError("between braces stands the name of a column and nothing else")
        found += [name] if name is not None else []
    return found


def topic_of(template: str) -> Column:
    """The topic of each event; NULL if a column of the template is."""
    from pyspark.sql import functions as f

    parts: list[Column] = []
    for text, name, _, _ in string.Formatter().parse(template):
        parts += [f.lit(text)] if text else []
        parts += [f.col(quote(name)).cast("string")] if name else []
    return f.concat(*parts)


def is_valid(topic: Column) -> Column:
    """Whether Kafka accepts the name of a topic."""
    from pyspark.sql import functions as f

    return f.coalesce(topic.rlike(VALID) & ~topic.isin(".", ".."), f.lit(False))
