"""Readers for the column values in rows of the binary log.

A reader gets the bytes of an event and the offset of a value, and returns the value and the offset of the
next value. Each column has a reader, created once per table: a row is read with one call per column.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from struct import Struct
from typing import Any

from penstock.connectors.mysql_cdc.kinds import DAY_US, day_of

Reader = Callable[[bytes, int], tuple[Any, int]]
Decode = Callable[[bytes], Any]


@dataclass(frozen=True)
class Inline:
    """A column whose values generated code can read without calling its reader."""

    form: str = ""
    """The format character of a number in the module `struct`."""
    codec: str = ""
    """The codec of a text of up to 255 bytes."""


BINARY = 63
"""The collation number of binary data."""

LATIN1 = "".join(bytes([i]).decode("cp1252", "ignore") or chr(i) for i in range(256))
"""MySQL's latin1: Windows 1252, plus control characters for the bytes that it leaves undefined."""

CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii", "latin2": "iso8859_2",
    "latin5": "iso8859_9", "latin7": "iso8859_13", "greek": "iso8859_7", "hebrew": "iso8859_8",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257", "cp850": "cp850",
    "cp852": "cp852", "cp866": "cp866", "koi8r": "koi8_r", "koi8u": "koi8_u", "macroman": "mac_roman",
    "macce": "mac_latin2", "tis620": "tis_620", "sjis": "shift_jis", "cp932": "cp932", "ujis": "euc_jp",
    "eucjpms": "euc_jp", "euckr": "euc_kr", "gb2312": "gb2312", "gbk": "gbk", "gb18030": "gb18030",
    "big5": "big5",
}  # fmt: skip
"""MySQL character sets, and the Python codecs that decode them."""


REPLACED = [0]
"""The number of texts with bytes that are invalid in their character set, which are read as U+FFFD."""


def text_codec(charset: str) -> Decode | None:
    """A function that decodes text of a character set; None if there is no codec for it."""
    if charset == "latin1":
        return lambda raw: codecs.charmap_decode(raw, "strict", LATIN1)[0]
    name = CODECS.get(charset)
    if name is None:
        return None

    def decode(raw: bytes) -> str:
        try:
            return raw.decode(name)
        except UnicodeDecodeError:
            REPLACED[0] += 1
            return raw.decode(name, "replace")

    decode.inline = Inline(codec=name)  # type: ignore[attr-defined]
    return decode


def number(form: str) -> Reader:
    """A number of fixed size."""
    unpack, size = Struct("<" + form).unpack_from, Struct("<" + form).size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    read.inline = Inline(form=form)  # type: ignore[attr-defined]
    return read


def medium(signed: bool) -> Reader:
    """A three-byte integer."""

    def read(data: bytes, at: int) -> tuple[int, int]:
        return int.from_bytes(data[at : at + 3], "little", signed=signed), at + 3

    return read


def counted(prefix: int, decode: Decode | None) -> Reader:
    """Length-prefixed bytes, decoded."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        start = at + prefix
        end = start + int.from_bytes(data[at:start], "little")
        raw = data[start:end]
        return raw if decode is None else decode(raw), end

    def read_short(data: bytes, at: int) -> tuple[Any, int]:
        end = at + 1 + data[at]
        raw = data[at + 1 : end]
        return raw if decode is None else decode(raw), end

    if prefix == 1:
        read_short.inline = getattr(decode, "inline", None)  # type: ignore[attr-defined]
        return read_short
    return read


def padded(size: int) -> Decode:
    """Bytes of BINARY(n), padded with the trailing zeros that are not in the log."""
    return lambda raw: raw.ljust(size, b"\0")


def inflated(decode: Decode | None) -> Decode:
    """The value of a COMPRESSED column of MariaDB."""

    def read(raw: bytes) -> Any:
        if raw and raw[0] & 0x80:  # method zlib; raw deflate if the flag 8 says that there is no header
            raw = zlib.decompress(raw[1 + (raw[0] & 7) :], -zlib.MAX_WBITS if raw[0] & 8 else zlib.MAX_WBITS)
        else:
            raw = raw[1:]
        return raw if decode is None else decode(raw)

    return read


GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Size in bytes of a group of decimal digits, by its number of digits (0 to 9)."""


def decimal(precision: int, scale: int, as_text: bool) -> Reader:
    """A DECIMAL as its unscaled integer, or as text if it has too many digits for Spark.

    Digits are stored in groups of nine, four bytes each, counted from the decimal point; the groups at both
    ends may be shorter. A negative number has all its bits inverted; the first bit is always flipped.
    """
    first, last = (precision - scale) % 9, scale % 9
    groups = (
        [first] * bool(first) + [9] * ((precision - scale) // 9) + [9] * (scale // 9) + [last] * bool(last)
    )
    size = sum(GROUP_BYTES[digits] for digits in groups)
    sign, mask = 1 << (8 * size - 1), (1 << 8 * size) - 1
    steps, shift = [], 8 * size
    for digits in groups:
        shift -= 8 * GROUP_BYTES[digits]
        steps.append((shift, (1 << 8 * GROUP_BYTES[digits]) - 1, 10**digits))

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + size
        bits = int.from_bytes(data[at:end], "big") ^ sign
        negative = bits & sign
        if negative:
            bits ^= mask
        value = 0
        for shift, part, base in steps:
            value = value * base + (bits >> shift & part)
        value = -value if negative else value
        return (_decimal_text(value, scale) if as_text else value), end

    def read_two(data: bytes, at: int) -> tuple[Any, int]:
        end = at + size
        bits = int.from_bytes(data[at:end], "big") ^ sign
        if bits & sign:
            bits ^= mask
            return -((bits >> shift) * base + (bits & part)), end
        return (bits >> shift) * base + (bits & part), end

    if len(steps) == 2:  # the most common case
        (shift, _, _), (_, part, base) = steps
        return read_two
    return read


def _decimal_text(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if value < 0 else text


def _fraction(digits: int) -> tuple[int, int]:
    """The size of a fraction of a second in bytes, and its unit in microseconds."""
    return (digits + 1) // 2, (1, 10_000, 100, 1)[(digits + 1) // 2]


def timestamp(digits: int) -> Reader:
    """A TIMESTAMP in microseconds; None for 0000-00-00."""
    size, unit = _fraction(digits)

    def read(data: bytes, at: int) -> tuple[int | None, int]:
        end = at + 4 + size
        seconds = int.from_bytes(data[at : at + 4], "big")
        micros = seconds * 1_000_000 + int.from_bytes(data[at + 4 : end], "big") * unit
        return micros or None, end

    return read


def datetime(digits: int) -> Reader:
    """A DATETIME in microseconds; None for an invalid date."""
    size, unit = _fraction(digits)
    days: dict[int, int | None] = {}

    def read(data: bytes, at: int) -> tuple[int | None, int]:
        end = at + 5 + size
        packed = int.from_bytes(data[at : at + 5], "big") - 0x8000000000
        when = packed >> 17
        try:
            day = days[when]
        except KeyError:
            months = when >> 5
            day = days[when] = day_of(months // 13, months % 13, when & 31)
            if len(days) > 100_000:
                days.clear()
        if day is None:
            return None, end
        seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
        micros = int.from_bytes(data[at + 5 : end], "big") * unit if size else 0
        return day * DAY_US + seconds * 1_000_000 + micros, end

    return read


def time(digits: int) -> Reader:
    """A TIME as MySQL prints it: it may be negative, and longer than a day."""
    size, unit = _fraction(digits)
    zero, mask = 0x800000 << 8 * size, (1 << 8 * size) - 1

    def read(data: bytes, at: int) -> tuple[str, int]:
        end = at + 3 + size
        packed = int.from_bytes(data[at:end], "big") - zero
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        whole, micros = packed >> 8 * size, (packed & mask) * unit
        text = f"{sign}{whole >> 12 & 1023:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
        return (f"{text}.{micros:06d}"[: digits - 6 or None] if digits else text), end

    return read


def date(data: bytes, at: int) -> tuple[int | None, int]:
    """A DATE as days since 1970; None for an invalid date."""
    packed = int.from_bytes(data[at : at + 3], "little")
    return day_of(packed >> 9, packed >> 5 & 15, packed & 31), at + 3


def old_timestamp(data: bytes, at: int) -> tuple[int | None, int]:
    """A TIMESTAMP of a table from before MySQL 5.6."""
    return int.from_bytes(data[at : at + 4], "little") * 1_000_000 or None, at + 4


def old_datetime(data: bytes, at: int) -> tuple[int | None, int]:
    """A DATETIME of a table from before MySQL 5.6."""
    digits = f"{int.from_bytes(data[at : at + 8], 'little'):014d}"
    day = day_of(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    seconds = int(digits[8:10]) * 3600 + int(digits[10:12]) * 60 + int(digits[12:])
    return (None if day is None else day * DAY_US + seconds * 1_000_000), at + 8


def old_time(data: bytes, at: int) -> tuple[str, int]:
    """A TIME of a table from before MySQL 5.6."""
    packed = int.from_bytes(data[at : at + 3], "little", signed=True)
    digits = f"{abs(packed):07d}"
    return (
        f"{'-' if packed < 0 else ''}{digits[:-4].lstrip('0').zfill(2)}:{digits[-4:-2]}:{digits[-2:]}",
        at + 3,
    )


def year(data: bytes, at: int) -> tuple[int, int]:
    """A YEAR; 0 stands for 0000."""
    return (1900 + data[at] if data[at] else 0), at + 1


def bits(count: int) -> Reader:
    """A BIT column: true or false, or a number."""
    size = (count + 7) // 8

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value = int.from_bytes(data[at : at + size], "big")
        return (bool(value) if count == 1 else value), at + size

    return read


def enum(size: int, names: Sequence[str]) -> Reader:
    """An ENUM as its text; MySQL stores an invalid value as the empty text."""
    known = ("", *names)

    def read(data: bytes, at: int) -> tuple[str, int]:
        return known[int.from_bytes(data[at : at + size], "little")], at + size

    return read


def choices(size: int, names: Sequence[str]) -> Reader:
    """A SET as its members, separated by commas."""

    def read(data: bytes, at: int) -> tuple[str, int]:
        members = int.from_bytes(data[at : at + size], "little")
        return ",".join(name for i, name in enumerate(names) if members >> i & 1), at + size

    return read


def json_text(raw: bytes) -> str | None:
    """MySQL's binary JSON as the text that a SELECT returns."""
    from pymysqlreplication.json_binary import parse_json

    return _json(parse_json(raw[0], raw[1:])) if raw else None


def _json(value: Any) -> str:
    """A value as JSON, as MySQL writes it; a decimal keeps its digits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(name)}: {_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        value = value.decode()
    return json.dumps(value, ensure_ascii=False, default=str)


def uuid_text(raw: bytes) -> str:
    """A UUID of MariaDB."""
    from uuid import UUID

    return str(UUID(bytes=raw.ljust(16, b"\0")))


def address_text(raw: bytes, size: int) -> str:
    """An INET4 or INET6 of MariaDB."""
    from ipaddress import ip_address

    return str(ip_address(raw.ljust(size, b"\0")))
