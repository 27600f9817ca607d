"""Rows that are compared as multisets, value by value and type by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa

MOST_SHOWN = 8

Row = tuple[Hashable, ...]


def rows_of(table: pa.Table | pa.RecordBatch, columns: Iterable[str] | None = None) -> list[Row]:
    """The rows of a table, in the order of `columns`, such that equal ones are equal in type too."""
    names = list(columns or table.schema.names)
    return [tuple(typed(row[name]) for name in names) for row in table.select(names).to_pylist()]


def typed(value: Any) -> Hashable:
    """A value that equals another only if both have the same type: 1 is not 1.0, NaN is NaN."""
    if isinstance(value, dict):
        return tuple((name, typed(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return ("list", *map(typed, value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, float | Decimal | bool):
        return type(value).__name__, repr(value)
    return value


def difference(expected: Iterable[Row], actual: Iterable[Row]) -> str | None:
    """How two multisets of rows differ, for a person to read; None if they do not."""
    wanted, found = Counter(expected), Counter(actual)
    if wanted == found:
        return None
    lines = [f"{wanted.total()} rows expected, {found.total()} found"]
    for title, rows in (("missing", wanted - found), ("not expected", found - wanted)):
        lines.append(f"{rows.total()} {title}:")
        lines += [
            f"  {_shown(row)}{f'  x{n}' if n > 1 else ''}" for row, n in islice(_sorted(rows), MOST_SHOWN)
        ]
        lines += ["  …"] if len(rows) > MOST_SHOWN else []
    return "\n".join(lines)


def _sorted(rows: Counter[Row]) -> list[tuple[Row, int]]:
    return sorted(rows.items(), key=lambda each: [str(value) for value in each[0]])


def _shown(row: Row) -> str:
    return " | ".join(value.isoformat(" ") if isinstance(value, datetime) else str(value) for value in row)
