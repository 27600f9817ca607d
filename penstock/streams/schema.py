"""Schemas of typed streams: Spark DDL as Arrow, and the changes that are compatible with stored events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from penstock.errors import Invalid, Problem
from penstock.streams.casting import is_wider

RESERVED = ("_key", "_headers", "_offset", "_time")
"""Columns that every event has in addition to those of the schema; readers see them."""


@lru_cache(maxsize=1024)
def arrow_schema(ddl: str) -> pa.Schema:
    """The Arrow schema of a Spark DDL, with the types of Spark's own conversion.

    Raises `Invalid` if the text is not a list of columns, or has a column that a stream cannot store.
    """
    from penstock.streams.ddl import Parser  # slow to import, and raw streams don't need it

    fields = list(Parser(ddl).columns())
    for field in fields:
        if field.name.lower() in RESERVED:
            raise Invalid(
                Problem(
                    code="reserved_column",
                    message=f"the column '{field.name}' has a reserved name",
                    path="schema",
                    hint=f"choose a name other than {', '.join(RESERVED)}",
                )
            )
    if [(field.name, field.type) for field in fields] == [("value", pa.binary())]:
        raise Invalid(
            Problem(
                code="raw_schema",
                message="a single column 'value BINARY' is the layout of a raw stream",
                path="schema",
                hint="remove the schema",
            )
        )
    return pa.schema(fields)


def same_or_wider(old: pa.Schema, new: pa.Schema) -> list[Problem]:
    """The changes from `old` to `new` that are incompatible with stored events.

    Columns may be removed, added if they are nullable, and widened, such as INT to BIGINT.
    """
    before = {field.name.lower(): field for field in old}
    problems = [problem for field in new for problem in _change(before.get(field.name.lower()), field)]
    if not before.keys() & {field.name.lower() for field in new}:
        problems.append(
            Problem(
                code="incompatible_schema",
                message="none of the columns of the stored events remain",
                path="schema",
                hint="keep at least one column, or create another stream",
            )
        )
    return problems


def _change(old: pa.Field | None, new: pa.Field) -> Iterator[Problem]:
    if old is None:
        if not new.nullable:
            yield Problem(
                code="required_column",
                message=f"stored events have no column '{new.name}', so it can't be NOT NULL",
                path="schema",
                hint=f"declare '{new.name}' without NOT NULL",
            )
    elif old.name != new.name or not is_wider(old.type, new.type):
        yield Problem(
            code="incompatible_type",
            message=f"stored events have '{old.name}' as {old.type}, not '{new.name}' as {new.type}",
            path="schema",
            hint="keep the type, widen it (INT to BIGINT), or add a column with another name",
        )
    elif old.nullable and not new.nullable:
        yield Problem(
            code="required_column",
            message=f"stored events may have null in '{new.name}', so it can't become NOT NULL",
            path="schema",
            hint=f"declare '{new.name}' without NOT NULL",
        )
