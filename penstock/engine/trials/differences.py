"""Differences between events and expected events, field by field.

Expected values are read as the type of their column: numbers compare by value, times as instants. A field
that is not expected may be null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types as is_
from pydantic import BaseModel, Field

from penstock.engine.trials.result import Event, as_events, numbers
from penstock.engine.trials.samples import META
from penstock.errors import did_you_mean
from penstock.frames.hidden import EVENT
from penstock.streams.decode import scalars
from penstock.streams.decode.results import Mismatch
from penstock.streams.rendering import plain_values

CLOSE = 1e-9
"""The relative tolerance for floating point numbers: sums depend on the order of their terms."""


class Difference(BaseModel):
    """A value that differs from the expected one."""

    where: str = Field(description="Such as `output[1].gross`.")
    message: str
    expected: Any = None
    actual: Any = None


class Events:
    """Actual events, to be compared with expected ones."""

    def __init__(self, table: pa.Table) -> None:
        self.rows = as_events(table)
        self.ordered = None not in numbers(table)
        self.kind = pa.struct([column for column in table.schema if column.name != EVENT])
        self.known = table.schema.field(EVENT).type

    def equal(self, expected: Sequence[Event], where: str) -> Iterator[Difference]:
        """The differences between these events and the expected ones."""
        in_order = self.ordered and len(expected) == len(self.rows)
        if in_order and not any(map(self._differs, expected, self.rows)):
            return
        missing, extra = self._unmatched(expected)
        if not missing and not extra:
            if self.ordered:
                yield Difference(where=where, message="the same events in a different order")
        elif in_order or len(missing) == len(extra):
            pairs = enumerate(range(len(expected))) if in_order else zip(missing, extra, strict=True)
            for i, j in pairs:
                yield from self._compared(expected[i], self.rows[j], f"{where}[{i}]", partly=False)
        else:
            for i in missing:
                yield Difference(where=f"{where}[{i}]", message="is missing", expected=expected[i])
            for i in extra:
                yield Difference(where=f"{where}[{i}]", message="is not expected", actual=self.rows[i])

    def contain(self, expected: Sequence[Event], where: str) -> Iterator[Difference]:
        """For each expected event that is missing, the differences to the most similar event."""
        for i, event in enumerate(expected):
            place = f"{where}.contains[{i}]"
            found = [list(self._compared(event, row, place, partly=True)) for row in self.rows]
            if not found:
                yield Difference(where=place, message="there are no events", expected=event)
            elif all(found):
                yield from min(found, key=len)

    def match(self, patterns: Sequence[Mapping[str, str]], where: str) -> Iterator[Difference]:
        """The patterns that no event matches."""
        for i, fields in enumerate(patterns):
            if not any(all(_matches(row, *each) for each in fields.items()) for row in self.rows):
                place = f"{where}.matches[{i}]"
                yield Difference(where=place, message="no event matches", expected=dict(fields))

    def _unmatched(self, expected: Sequence[Event]) -> tuple[list[int], list[int]]:
        """The expected events that are missing, and the unexpected ones, regardless of order."""
        extra, missing = list(range(len(self.rows))), []
        for i, event in enumerate(expected):
            found = next((j for j in extra if not self._differs(event, self.rows[j])), None)
            if found is None:
                missing.append(i)
            else:
                extra.remove(found)
        return missing, extra

    def _differs(self, expected: Event, actual: Event) -> bool:
        return next(self._compared(expected, actual, "", partly=False), None) is not None

    def _compared(self, expected: Event, actual: Event, where: str, *, partly: bool) -> Iterator[Difference]:
        columns = {name: value for name, value in expected.items() if name != META}
        own = {name: value for name, value in actual.items() if name != META}
        yield from compared(columns, own, self.kind, where, partly=partly)
        if isinstance(meta := expected.get(META), Mapping):
            known = {field.name: actual[META].get(field.name) for field in self.known}
            yield from compared(meta, known, self.known, f"{where}.{META}", partly=True)


def compared(
    expected: Any, actual: Any, kind: pa.DataType, where: str, *, partly: bool
) -> Iterator[Difference]:
    """The differences between two values; with `partly` only in the expected fields."""
    if is_.is_struct(kind) and isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, value in expected.items():
            at = kind.get_field_index(name)
            if at < 0:
                hint = did_you_mean(name, actual)
                message = f"there is no such field ({hint})"
                yield Difference(where=f"{where}.{name}", message=message, expected=value)
            else:
                inner = kind.field(at).type
                yield from compared(value, actual[name], inner, f"{where}.{name}", partly=partly)
        if not partly:
            yield from _unexpected(expected, actual, where)
    elif is_.is_map(kind) and isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, value in expected.items():
            if name in actual:
                inner = kind.item_type
                yield from compared(value, actual[name], inner, f"{where}.{name}", partly=partly)
            else:
                yield Difference(where=f"{where}.{name}", message="is missing", expected=value)
        if not partly:
            yield from _unexpected(expected, actual, where)
    elif is_.is_list(kind) and isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            message = f"{len(actual)} elements instead of {len(expected)}"
            yield Difference(where=where, message=message, expected=expected, actual=actual)
            return
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from compared(one, other, kind.value_type, f"{where}[{i}]", partly=partly)
    else:
        yield from _leaf(expected, actual, kind, where)


def _unexpected(expected: Mapping[str, Any], actual: Mapping[str, Any], where: str) -> Iterator[Difference]:
    for name, value in actual.items():
        if name not in expected and value is not None:
            yield Difference(where=f"{where}.{name}", message="is not expected", actual=value)


def _leaf(expected: Any, actual: Any, kind: pa.DataType, where: str) -> Iterator[Difference]:
    if expected is None or actual is None or is_.is_nested(kind):
        if expected != actual:
            yield Difference(where=where, message="differs", expected=expected, actual=actual)
        return
    try:
        value = _as_column(expected, kind)
    except Mismatch as mismatch:
        message = f"the expected value {mismatch.problem}"
        yield Difference(where=where, message=message, expected=expected, actual=actual)
        return
    if is_.is_floating(kind) and isinstance(value, float) and isinstance(actual, float):
        same = math.isclose(value, actual, rel_tol=CLOSE)
    else:
        same = value == actual
    if not same:
        yield Difference(where=where, message="differs", expected=expected, actual=actual)


def _as_column(value: Any, kind: pa.DataType) -> Any:
    """A JSON value, rendered like a value of a column of that type."""
    if isinstance(value, float):
        if is_.is_integer(kind) and value.is_integer():
            value = int(value)
        elif is_.is_decimal(kind):
            value = Decimal(repr(value))
    return plain_values(pa.array([scalars.from_json(kind)(value)], kind))[0]


def _matches(event: Event, field: str, pattern: str) -> bool:
    value: Any = event
    for name in [field] if field in event else field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return False
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return re.search(pattern, text) is not None
