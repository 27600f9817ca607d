"""JSON texts that fit a type, nearly fit it, or have nothing to do with it."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from decimal import Context, Decimal
from functools import lru_cache

import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import types as is_

ODD_TEXTS = r"""
null true false 0 -0 0.0 1.0 1e3 1E-2 12 -1 128 -129 32768 2147483648 9223372036854775807
9223372036854775808 -9223372036854775809 1e39 3.4028236e38 1e308 20e307 -1e400 1e-400 0.1 1.255 1.250
99999.99 123456789012345678901234567890 NaN Infinity -Infinity Inf 01 +1 1. .5 0x1F {} [] [1] [null]
{"x":1} {"k":null} "" "12" "1.5" "1e2" "+1" "1." ".5" "NaN" "Infinity" "-Infinity" "nan" " 1" "true"
"AAA=" "AAA" "AA==" "A+/=" "A-_=" "2026-01-31" "2026-02-30" "0000-01-01" "9999-12-31" "20260131"
"2026-1-1" "2026-01-31T12:00:00Z" "2026-01-31T12:00:00" "2026-01-31T12:00" "2026-01-31T12"
"2026-01-31T12Z" "2026-01-31T24:00:00" "2026-01-31T12:00:60Z" "2026-01-31T12:00:00.123456Z"
"2026-01-31T12:00:00.1234567Z" "2026-01-31T12:00:00.123000000Z" "2026-01-31T12:00:00+02"
"2026-01-31T12:00:00+0200" "2026-01-31T12:00:00-23:59" "2026-01-31T12:00:00+24:00"
"2026-01-31T12:00:00+02:60" "2026-01-31t12:00:00z" "2026-01-31Z" "0001-01-01T00:00:00+02:00"
"9999-12-31T23:59:59-02:00" "2026-W05-1" "2026-01-31T12:00:00,5Z" "2026-01-31T12:00:00.Z" "\u0041"
"\ud83d\ude00" "\ud800" "\x" "a\tb" "ä" "\u0000" tru nul "
"""
ODD = st.sampled_from(ODD_TEXTS.split())
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
).map(json.dumps)

local_times = st.builds(
    lambda at, mark, digits: at.isoformat(mark)[:digits],
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),
    st.sampled_from("T "),
    st.sampled_from([13, 16, 19, 21, 23, 26]),
)
zones = st.sampled_from(["", "Z", "+00:00", "-05:30", "+0200", "+14"])
times = st.tuples(local_times, zones).map("".join)
WIDE = Context(prec=60)


def fitting(kind: pa.DataType) -> st.SearchStrategy[str]:
    """Texts of values that fit, or come close."""
    if is_.is_struct(kind):
        return objects(list(kind))
    if is_.is_map(kind):
        names = fitting(kind.key_type).map(lambda text: text if text.startswith('"') else f'"{text}"')
        pairs = st.lists(st.tuples(names, fitting(kind.item_type)), max_size=3)
        return pairs.map(lambda them: "{" + ",".join(f"{name}:{value}" for name, value in them) + "}")
    if is_.is_list(kind):
        return st.lists(fitting(kind.value_type), max_size=3).map(lambda them: f"[{','.join(them)}]")
    if is_.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return st.integers(-limit - 1, limit).map(str)
    if is_.is_floating(kind):
        return st.integers().map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    if is_.is_decimal(kind):
        digits = st.integers(-(10**kind.precision), 10**kind.precision)
        numbers = digits.map(lambda number: Decimal(number).scaleb(-kind.scale, WIDE))
        numbers |= st.integers(-(10**45), 10**45).map(Decimal) | st.just(Decimal("1E+3"))
        shapes = (str, "{:f}".format, "{:e}".format, '"{:f}"'.format)
        return st.builds(lambda number, shape: shape(number), numbers, st.sampled_from(shapes))
    if is_.is_date(kind):
        return st.dates().map(lambda day: f'"{day}"')
    if is_.is_timestamp(kind):
        return (times if kind.tz else local_times | times).map(lambda text: f'"{text}"')
    if is_.is_binary(kind):
        return st.binary(max_size=5).map(lambda value: json.dumps(base64.b64encode(value).decode()))
    if is_.is_boolean(kind):
        return st.sampled_from(["true", "false"])
    return st.builds(
        lambda text, ascii: json.dumps(text, ensure_ascii=ascii), st.text(max_size=5), st.booleans()
    )


@st.composite
def objects(
    draw: st.DrawFn, fields: list[pa.Field], values: list[st.SearchStrategy[str]] | None = None
) -> str:
    """A text of an object with the fields; sometimes one lacks, stands twice, is odd, or is not of them."""
    values = values or [fitting(field.type) for field in fields]
    members = [(json.dumps(field.name), draw(value)) for field, value in zip(fields, values, strict=True)]
    at = draw(st.integers(0, len(members) - 1))
    match draw(st.sampled_from(["whole", "whole", "whole", "less", "twice", "odd", "other"])):
        case "less":
            members.pop(at)
        case "twice":
            members.append((members[at][0], draw(values[at])))
        case "odd":
            members[at] = members[at][0], draw(ODD)
        case "other":
            members.insert(at, (draw(st.sampled_from(['"other"', '"\\u0069d"'])), draw(ODD | ANY_JSON)))
    gap = draw(st.sampled_from(["", " ", "\t"]))
    return "{" + f",{gap}".join(f"{name}:{gap}{value}" for name, value in members) + "}"


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with a character removed, doubled or put in."""
    text = draw(texts)
    at = draw(st.integers(0, len(text)))
    return (
        text[:at]
        + draw(st.sampled_from(["", *'{}[],:"\\ \n019.eE-NaI\x00\x0b\ufeff']))
        + text[at + draw(st.integers(0, 1)) :]
    )


@lru_cache  # hypothesis knows a strategy by its identity
def lines(schema: pa.Schema) -> st.SearchStrategy[bytes]:
    """Texts of events, most of which fit."""
    fields = list(schema)
    good = objects(fields, [fitting(field.type) for field in fields])
    text = st.one_of(good, good, good, mutated(good), ANY_JSON, ODD)
    return text.map(lambda found: found.encode(errors="surrogatepass")) | st.binary(max_size=8)
