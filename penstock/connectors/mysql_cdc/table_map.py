"""TABLE_MAP events: the columns of a table in the row events that follow.

With `binlog_row_metadata = FULL`, such an event completely describes a table at that place in the log. The
columns that the table has now do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.connectors.mysql_cdc import kinds, values
from penstock.connectors.mysql_cdc.kinds import Kind
from penstock.connectors.mysql_cdc.values import BINARY, Decode, Reader
from penstock.errors import Invalid, Problem

(
    TINY,
    SHORT,
    LONG,
    FLOAT,
    DOUBLE,
    NULL,
    OLD_TIMESTAMP,
    LONGLONG,
    INT24,
    DATE,
    OLD_TIME,
    OLD_DATETIME,
    YEAR,
) = range(1, 14)
VARCHAR, BIT, TIMESTAMP, DATETIME, TIME = range(15, 20)
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
JSON, NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 245, 246, 247, 248, 252, 253, 254, 255

ONE_BYTE = frozenset({FLOAT, DOUBLE, BLOB, GEOMETRY, JSON, TIMESTAMP, DATETIME, TIME, BLOB_COMPRESSED})
TWO_BYTES = frozenset({VARCHAR, BIT, NEWDECIMAL, STRING, VAR_STRING, VARCHAR_COMPRESSED})
"""Types with one or two bytes of metadata."""

NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
CHARACTER = frozenset({STRING, VAR_STRING, VARCHAR, BLOB})
CHOICES = frozenset({ENUM, SET})
COMPRESSED = frozenset({BLOB_COMPRESSED, VARCHAR_COMPRESSED})
CHARACTER_IN_MARIADB = CHARACTER | COMPRESSED | {GEOMETRY}
"""Types whose metadata includes the sign or the collation."""

WHOLE = {
    TINY: ("b", "B", "tinyint"), SHORT: ("h", "H", "smallint"), LONG: ("i", "I", "int"),
    LONGLONG: ("q", "Q", "bigint"),
}  # fmt: skip

SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, NAMES, SET_VALUES, ENUM_VALUES = range(1, 7)
KEY, PREFIX_KEY, CHOICE_DEFAULT_CHARSET, CHOICE_CHARSET = 8, 9, 10, 11
"""Field types of the metadata at the end of the event."""

Charsets = Mapping[int, str]
"""The character sets of a server by collation number."""

Hints = Mapping[str, str]
"""MariaDB types that appear as bytes in the log (uuid, inet4 and inet6), by column name."""


@dataclass(frozen=True)
class Column:
    """A column, and the reader of its values."""

    name: str
    kind: Kind
    read: Reader


@dataclass(frozen=True)
class Table:
    """A table as defined at a place in the log."""

    name: str
    """The name with its database: `shop.orders`."""
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    """The columns of the primary key, by their number."""


def name_of(body: bytes) -> str:
    """The name of the table of an event, with its database."""
    end = 9 + body[8]
    schema = body[9:end].decode()
    return f"{schema}.{body[end + 2 : end + 2 + body[end + 1]].decode()}"


def table_of(body: bytes, charsets: Charsets, where: str, hints: Hints | None) -> Table:
    """The table of a TABLE_MAP event. Raises `Invalid` if the event lacks metadata about the table.

    `hints` is None on MySQL, whose log differs slightly from MariaDB's.
    """
    name = name_of(body)
    at = 9 + body[8] + 1
    at += 1 + body[at] + 1
    count, at = packed(body, at)
    types = list(body[at : at + count])
    size, at = packed(body, at + count)
    metas, end = [], at + size
    for i, code in enumerate(types):
        wide = 2 if code in TWO_BYTES else 1 if code in ONE_BYTE else 0
        meta, at = body[at : at + wide], at + wide
        if code == STRING:
            types[i], meta = _string_type(meta)
        metas.append(meta)
    character = CHARACTER if hints is None else CHARACTER_IN_MARIADB
    described = _Described(types, body[end + (count + 7) // 8 :], charsets, character)
    if len(described.names) != count:
        raise Invalid(_no_names(name, where))
    columns = []
    for i, column in enumerate(described.names):
        found = _column(types[i], metas[i], described, i, (hints or {}).get(column))
        if found is None:
            raise Invalid(_unknown_type(name, column, types[i]))
        columns.append(Column(column, *found))
    return Table(name, tuple(columns), tuple(described.key))


def packed(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, and the offset after it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _string_type(meta: bytes) -> tuple[int, bytes]:
    """The actual type, which is encoded in the metadata of CHAR, ENUM and SET, and its length."""
    first, second = meta
    if first & 0x30 != 0x30:  # two bits of a length above 255, inverted
        return first | 0x30, (second | ((first & 0x30 ^ 0x30) << 4)).to_bytes(2, "little")
    return first, second.to_bytes(2, "little")


class _Described:
    """The metadata at the end of an event, by the number of a column."""

    def __init__(
        self, types: Sequence[int], data: bytes, charsets: Charsets, character: frozenset[int]
    ) -> None:
        self.unsigned: set[int] = set()
        self.names: list[str] = []
        self.key: list[int] = []
        self.collations: dict[int, int] = {}
        self.members: dict[int, list[str]] = {}
        self.charsets = charsets
        lists: dict[int, list[list[bytes]]] = {}
        numeric = [i for i, code in enumerate(types) if code in NUMERIC]
        text = [i for i, code in enumerate(types) if code in character]
        choice = [i for i, code in enumerate(types) if code in CHOICES]
        for field, part in _fields(data):
            if field == SIGNEDNESS:
                self.unsigned = {c for n, c in enumerate(numeric) if part[n // 8] & 0x80 >> n % 8}
            elif field in (DEFAULT_CHARSET, COLUMN_CHARSET):
                self.collations |= _collations(text, part, field == DEFAULT_CHARSET)
            elif field in (CHOICE_DEFAULT_CHARSET, CHOICE_CHARSET):
                self.collations |= _collations(choice, part, field == CHOICE_DEFAULT_CHARSET)
            elif field == NAMES:
                self.names = [each.decode() for each in _strings(part)]
            elif field in (SET_VALUES, ENUM_VALUES):
                lists[field] = list(_lists(part))
            elif field == KEY:
                self.key = list(_numbers(part))
            elif field == PREFIX_KEY:
                self.key = list(_numbers(part))[::2]
        for field, code in ((SET_VALUES, SET), (ENUM_VALUES, ENUM)):
            columns = [i for i in choice if types[i] == code]
            for column, members in zip(columns, lists.get(field, ()), strict=False):
                decode = self.decode(column) or bytes.decode
                self.members[column] = [decode(member) for member in members]

    def decode(self, column: int) -> Decode | None:
        """The function that decodes the text of a column; None if the column is binary."""
        collation = self.collations.get(column, BINARY)
        if collation == BINARY:
            return None
        charset = self.charsets.get(collation, f"collation {collation}")
        decode = values.text_codec(charset)
        if decode is None:
            raise Invalid(unknown_charset(self.names[column] if self.names else "", charset))
        return decode


def _column(
    code: int, meta: bytes, described: _Described, i: int, hint: str | None
) -> tuple[Kind, Reader] | None:
    """The kind and the reader of a column; None if its type is unknown."""
    unsigned, size = i in described.unsigned, int.from_bytes(meta, "little")
    if code in WHOLE:
        signed_form, unsigned_form, name = WHOLE[code]
        return kinds.WHOLE[name][unsigned], values.number(unsigned_form if unsigned else signed_form)
    if code == INT24:
        return kinds.INT, values.medium(not unsigned)
    if code == FLOAT:
        return kinds.FLOAT, values.number("f")
    if code == DOUBLE:
        return kinds.DOUBLE, values.number("d")
    if code == NEWDECIMAL:
        kind = kinds.decimal_kind(meta[0], meta[1])
        return kind, values.decimal(meta[0], meta[1], kind.ddl == "STRING")
    if code == BIT:
        count = meta[1] * 8 + meta[0]
        return kinds.bit_kind(count), values.bits(count)
    if code == ENUM:
        return kinds.CHOICE, values.enum(meta[0], described.members.get(i, ()))
    if code == SET:
        return kinds.CHOICE, values.choices(meta[0], described.members.get(i, ()))
    if code in TIMES:
        return TIMES[code][0], TIMES[code][1](size)
    if code in PLAIN:
        return PLAIN[code]
    if code == JSON:
        return kinds.TEXT, values.counted(size, values.json_text)
    if code == GEOMETRY:
        return kinds.BYTES, values.counted(size, None)
    return _text_column(code, size, described.decode(i), hint)


TIMES = {
    TIMESTAMP: (kinds.TIMESTAMP, values.timestamp),
    DATETIME: (kinds.DATETIME, values.datetime),
    TIME: (kinds.TEXT, values.time),
}

PLAIN: dict[int, tuple[Kind, Reader]] = {
    DATE: (kinds.DATE, values.date),
    YEAR: (kinds.SMALLINT, values.year),
    OLD_TIMESTAMP: (kinds.TIMESTAMP, values.old_timestamp),
    OLD_DATETIME: (kinds.DATETIME, values.old_datetime),
    OLD_TIME: (kinds.TEXT, values.old_time),
}


def _text_column(code: int, size: int, decode: Decode | None, hint: str | None) -> tuple[Kind, Reader] | None:
    if hint is not None:
        decode = values.uuid_text if hint == "uuid" else partial(values.address_text, size=size)
    kind = kinds.BYTES if decode is None else kinds.TEXT
    if code == STRING and decode is None:
        decode = values.padded(size)
    if code in COMPRESSED:
        decode = values.inflated(decode)
    if code in (BLOB, BLOB_COMPRESSED):
        return kind, values.counted(size, decode)
    if code in (STRING, VARCHAR, VAR_STRING, VARCHAR_COMPRESSED):
        return kind, values.counted(1 if size < 256 else 2, decode)
    return None


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size, start = packed(data, at + 1)
        yield data[at], data[start : start + size]
        at = start + size


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = packed(data, at)
        yield value


def _strings(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = packed(data, at)
        yield data[at : at + size]
        at += size


def _lists(data: bytes) -> Iterator[list[bytes]]:
    at = 0
    while at < len(data):
        count, at = packed(data, at)
        found = []
        for _ in range(count):
            size, at = packed(data, at)
            found.append(data[at : at + size])
            at += size
        yield found


def _collations(columns: Sequence[int], data: bytes, default: bool) -> dict[int, int]:
    """The collation of each column, from a full list or from a default and its exceptions."""
    given = list(_numbers(data))
    if not default:
        return dict(zip(columns, given, strict=False))
    others = dict(zip(given[1::2], given[2::2], strict=True))
    return {column: others.get(n, given[0]) for n, column in enumerate(columns)}


def _no_names(table: str, where: str) -> Problem:
    return Problem(
        code="row_metadata_missing",
        message=f"the change of '{table}' at {where} contains no column names",
        path="tables",
        hint="SET GLOBAL binlog_row_metadata = FULL on the server, then start over: changes written before "
        "that can't be read",
    )


def _unknown_type(table: str, column: str, code: int) -> Problem:
    return Problem(
        code="unsupported_type",
        message=f"column '{column}' of '{table}' has an unsupported type (number {code} in the log)",
        path="tables",
        hint="change the type of the column, or exclude the table",
    )


def unknown_charset(column: str, charset: str) -> Problem:
    """The problem for a column whose text can't be decoded."""
    return Problem(
        code="unsupported_charset",
        message=f"column '{column}' has the unsupported character set {charset}",
        path="tables",
        hint="convert the column to utf8mb4, or exclude the table",
    )
