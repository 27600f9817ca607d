"""PostgreSQL types: their Spark types, and the conversion of values from PostgreSQL's text format.

A column of texts is converted as a whole. Values that a column can't hold, such as `infinity` in a date,
are reported by row and never changed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.streams.decode.csv_body import parse_column
from penstock.streams.decode.results import Mismatch

BOOL, BYTEA, INT8, INT2, INT4, OID = 16, 17, 20, 21, 23, 26
FLOAT4, FLOAT8, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 700, 701, 1082, 1114, 1184, 1700

NAMES = {
    BOOL: "BOOLEAN",
    BYTEA: "BINARY",
    INT2: "SMALLINT",
    INT4: "INT",
    INT8: "BIGINT",
    OID: "BIGINT",
    FLOAT4: "FLOAT",
    FLOAT8: "DOUBLE",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP_NTZ",
    TIMESTAMPTZ: "TIMESTAMP",
}
INTEGERS = (INT2, INT4, INT8, OID)
NUMBERS = (FLOAT4, FLOAT8, NUMERIC)

MOST_DIGITS = 38
SPECIAL = "[NI]"
"""Matches the special numbers NaN, Infinity and -Infinity."""
ESCAPED = r'["\\\x00-\x1f]'
"""Characters that have to be escaped in a JSON string."""
DAY = r"^([0-9]+-[0-9][0-9]-[0-9][0-9]) "
UTC = r"\+00$"


@dataclass(frozen=True)
class Kind:
    """A type: a known type by its OID, an array of another kind, or any other type, which stays text."""

    type: int
    modifier: int = -1
    element: Kind | None = None

    @property
    def ddl(self) -> str:
        """The Spark type of a column of this kind."""
        if self.element is not None:
            return f"ARRAY<{self.element.ddl}>"
        if self.type == NUMERIC:
            return _decimal(self.modifier)
        return NAMES.get(self.type, "STRING")

    def typed(self, texts: pa.StringArray, field: pa.Field, faults: dict[int, Mismatch]) -> pa.Array:
        """The values of a column in the type of `field`; adds rows that don't match it to `faults`."""
        if pa.types.is_string(field.type):
            return texts
        if pa.types.is_boolean(field.type) and self.type == BOOL:
            return pc.equal(texts, "t")
        if pa.types.is_binary(field.type) and self.type == BYTEA:
            return pa.array([_bytes(text) for text in texts.to_pylist()], pa.binary())
        return parse_column(self.json(texts) if self.element else texts, field, faults)

    def json(self, texts: pa.StringArray) -> pa.StringArray:
        """The values as JSON; null stays null."""
        if self.element is not None:
            write = self.element.write
            return pa.array([_array(text, write) for text in texts.to_pylist()], pa.string())
        if self.type in INTEGERS:
            return texts
        if self.type in NUMBERS:
            special = pc.match_substring_regex(texts, SPECIAL)
            return pc.if_else(special, _quoted(texts), texts) if pc.any(special).as_py() else texts
        if self.type == BOOL:
            return pc.if_else(pc.equal(texts, "t"), "true", "false")
        if self.type == BYTEA:
            return pa.array(
                [None if text is None else self.write(text) for text in texts.to_pylist()], pa.string()
            )
        if self.type in (TIMESTAMP, TIMESTAMPTZ):
            texts = pc.replace_substring_regex(texts, DAY, r"\1T")
            texts = pc.replace_substring_regex(texts, UTC, "Z") if self.type == TIMESTAMPTZ else texts
        elif self.type != DATE and pc.any(pc.match_substring_regex(texts, ESCAPED)).as_py():
            return pa.array(
                [None if text is None else orjson.dumps(text).decode() for text in texts.to_pylist()],
                pa.string(),
            )
        return _quoted(texts)

    def write(self, text: str) -> str:
        """A single value, not an array, as JSON."""
        if self.type in INTEGERS or (self.type in NUMBERS and not re.search(SPECIAL, text)):
            return text
        if self.type == BOOL:
            return "true" if text == "t" else "false"
        if self.type == BYTEA:
            return f'"{base64.b64encode(_bytes(text) or b"").decode()}"'
        if self.type in (TIMESTAMP, TIMESTAMPTZ):
            text = re.sub(DAY, r"\1T", text)
            text = re.sub(UTC, "Z", text) if self.type == TIMESTAMPTZ else text
        return orjson.dumps(text).decode()


def _decimal(modifier: int) -> str:
    """The Spark type of a numeric: text if its precision is unlimited or too large."""
    digits, scale = ((modifier - 4) >> 16) & 0xFFFF, (modifier - 4) & 0x7FF
    if modifier < 4 or digits > MOST_DIGITS or scale > digits:  # a negative scale reads as a large number
        return "STRING"
    return f"DECIMAL({digits},{scale})"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text[2:])


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise('"', texts, '"', "")


TOKEN = re.compile(r'[{},]|"(?:[^"\\]|\\.)*"|[^{},"]+', re.DOTALL)


def _array(text: str | None, write: Callable[[str], str]) -> str | None:
    """An array as JSON. Multidimensional arrays are nested; bounds such as `[0:1]=` are omitted."""
    if text is None:
        return None
    return "".join(_parts(text[text.index("{") :], write))


def _parts(text: str, write: Callable[[str], str]) -> Iterator[str]:
    for found in TOKEN.finditer(text):
        token = found[0]
        if token in "{},":
            yield {"{": "[", "}": "]"}.get(token, token)
        elif token.startswith('"'):
            yield write(re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL))
        else:
            yield "null" if token.upper() == "NULL" else write(token)


class Kinds:
    """The kinds of types by OID, looked up in the catalog on first use."""

    def __init__(self, look_up: Callable[[int], tuple[Any, ...] | None]) -> None:
        """`look_up` returns typtype, typbasetype, typtypmod, typelem, typcategory and typdelim of a type."""
        self._look_up = look_up
        self._known: dict[int, tuple[Any, ...] | None] = {}

    def kind(self, type_: int, modifier: int) -> Kind:
        """The kind of a column's type; a domain has the kind of its base type."""
        if type_ in NAMES or type_ == NUMERIC:
            return Kind(type_, modifier)
        if type_ not in self._known:
            self._known[type_] = self._look_up(type_)
        found = self._known[type_]
        if found is None:  # dropped in the meantime
            return Kind(type_)
        sort, base, base_modifier, element, category, delimiter = found
        if sort == "d":
            return self.kind(base, base_modifier if base_modifier >= 0 else modifier)
        # The internal vector types are in the same category, but have a different text format.
        if category == "A" and element and delimiter == "," and type_ not in (22, 30):
            return Kind(type_, modifier, self.kind(element, modifier))
        return Kind(type_)
