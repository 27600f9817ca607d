"""Dates and times as ISO 8601 text, by value and by column. Both accept exactly the same texts.

A time without a zone in a TIMESTAMP column is UTC. A time with a zone does not fit TIMESTAMP_NTZ. Years are 1
to 9999, as in Spark.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from penstock.streams.decode.results import Mismatch, shown

DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ](?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,6}(?P<finer>\d{1,3})?)?)?)?"
    r"(?P<zone>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
EPOCH_DAY = date(1970, 1, 1).toordinal()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = (date.min.toordinal() - EPOCH_DAY, date.max.toordinal() - EPOCH_DAY)
MICROSECONDS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)


def days(value: object) -> int:
    """The days from 1970 to a date."""
    if isinstance(value, str) and DATE.fullmatch(value):
        try:
            return date.fromisoformat(value).toordinal() - EPOCH_DAY
        except ValueError:
            raise Mismatch("out_of_range", f"is {shown(value)}, a date that does not exist") from None
    raise Mismatch("wrong_type", f"is {shown(value)}, not a date such as 2026-01-31 (DATE)")


def instant(value: object) -> int:
    """The microseconds from 1970 to a time with or without a zone."""
    text, _ = _time(value, "a time such as 2026-01-31T12:00:00Z (TIMESTAMP)")
    return _microseconds(text)


def local_time(value: object) -> int:
    """The microseconds from 1970 to a time without a zone."""
    wanted = "a time without a zone such as 2026-01-31T12:00:00 (TIMESTAMP_NTZ)"
    text, zone = _time(value, wanted)
    if zone:
        raise Mismatch("wrong_type", f"is {shown(value)}, not {wanted}")
    return _microseconds(text)


def column(texts: pa.StringArray, to: pa.DataType) -> pa.Array | None:
    """A column of dates or times; None if the values have to be parsed one by one."""
    try:
        made = texts.cast(to)
    except pa.ArrowInvalid:
        if not is_.is_timestamp(to) or to.tz is None:
            return None
        try:
            made = texts.cast(pa.timestamp("us")).cast(to)
        except pa.ArrowInvalid:  # a mix of times with and without a zone, or an invalid text
            return None
    first, last, number = (*DAYS, pa.int32()) if is_.is_date(to) else (*MICROSECONDS, pa.int64())
    ends = pc.min_max(made.cast(number)).as_py()
    inside = ends["min"] is None or (first <= ends["min"] and ends["max"] <= last)
    return made if inside else None


def _time(value: object, wanted: str) -> tuple[str, bool]:
    found = TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Mismatch("wrong_type", f"is {shown(value)}, not {wanted}")
    if (found["finer"] or "").strip("0"):
        raise Mismatch("out_of_range", f"is {shown(value)}, finer than a microsecond")
    return found[0], bool(found["zone"])


def _microseconds(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        since = time - EPOCH
    except (ValueError, OverflowError):
        raise Mismatch("out_of_range", f"is {shown(text)}, a time that does not exist") from None
    found = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not MICROSECONDS[0] <= found <= MICROSECONDS[1]:
        raise Mismatch("out_of_range", f"is {shown(text)}, a time outside the years 1 to 9999")
    return found
