"""JSON bodies: one value, an array of events, or one event per line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pyarrow as pa
import pydantic_core

from penstock.streams.decode import columns
from penstock.streams.decode.results import Decoded, Mismatch, nothing, raw_batch, whole
from penstock.streams.decode.values import form_of, load
from penstock.streams.events import Event, Form

BLANK = b" \t\r\n"
SPACE = re.compile(r"[ \t\r\n]*")
BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
FEW = 32
"""Up to this many events, reading them one by one is faster than starting Arrow's reader."""


def decode_lines(body: bytes, schema: pa.Schema | None) -> Decoded:
    """One event per line; lines are decoded independently, and blank lines are ignored."""
    lines = [line.strip(BLANK) for line in body.rstrip(BLANK).split(b"\n")]
    if all(lines):
        return decode_texts(lines, schema)
    numbers = [n for n, line in enumerate(lines, 1) if line]
    return decode_texts([line for line in lines if line], schema, numbers)


def decode_document(body: bytes, schema: pa.Schema | None) -> Decoded:
    """A body with one JSON value: an event, or an array of events."""
    body = body.strip(BLANK)
    if not body:
        return Decoded(nothing(schema))
    if (guess := _guess(body)) is not None:
        try:
            return _all(guess, schema)
        except columns.Unsure:
            pass
    try:
        return decode_texts(split(body), schema)
    except Mismatch as mismatch:
        return broken(body, schema, mismatch)


def decode_one(body: bytes, form: Form) -> Event | None:
    """The event of a body with one JSON value; None if the value is an array, or does not fit the stream."""
    text = body.strip(BLANK)
    if not text or text.startswith(b"["):
        return None
    try:
        return Event(form, form.load(text), len(text))
    except Mismatch:
        return None


def decode_texts(
    texts: list[bytes], schema: pa.Schema | None, numbers: Sequence[int] | None = None
) -> Decoded:
    """Decode one event per JSON text. `numbers` are their line numbers, by default 1, 2, 3, …"""
    if schema is not None and len(texts) > FEW:
        try:
            return _all(texts, schema)
        except columns.Unsure:
            pass
    numbers = range(1, len(texts) + 1) if numbers is None else numbers
    return _each(texts, form_of(schema), numbers)


def split(body: bytes) -> list[bytes]:
    """The texts of the elements of a JSON array, or the body itself if it is another value.

    Raises `Mismatch` if the body is not JSON.
    """
    if not body.startswith(b"["):
        load(body)
        return [body]
    if not load(body):
        return []
    text, at = body.decode(), 1
    scan = json.JSONDecoder().raw_decode
    found = []
    while True:
        start = _skip(text, at)
        end = scan(text, start)[1]
        found.append(text[start:end].encode())
        at = _skip(text, end) + 1
        if text[at - 1] == "]":
            return found


def broken(body: bytes, schema: pa.Schema | None, mismatch: Mismatch) -> Decoded:
    """The result for a body that is not valid JSON."""
    at = re.search(r"at line (\d+) column \d+$", mismatch.problem)
    hint = "; send one value per line as application/x-ndjson" if "trailing" in mismatch.problem else ""
    return whole(body, schema, mismatch.code, mismatch.problem + hint, int(at[1]) if at else 1)


def _skip(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches nothing, too


def _guess(body: bytes) -> list[bytes] | None:
    """The elements of an array of objects, on the assumption that every `},{` separates two elements.

    Strings and nested objects can contain `},{` too. Then some pieces are not valid JSON, which the decoder
    detects.
    """
    if not (body.startswith(b"[") and body.endswith(b"]")):
        return None
    pieces = BETWEEN.split(body[1:-1].strip(BLANK))
    if len(pieces) <= FEW:
        return None
    return [pieces[0] + b"}", *(b"{%b}" % piece for piece in pieces[1:-1]), b"{" + pieces[-1]]


def _all(texts: list[bytes], schema: pa.Schema | None) -> Decoded:
    """Decode all events at once, or raise `Unsure`."""
    if schema is not None:
        return Decoded(columns.read_json(texts, schema))
    try:
        for text in texts:
            pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        raise columns.Unsure from None
    return Decoded(raw_batch(texts))


def _each(texts: list[bytes], form: Form, numbers: Sequence[int]) -> Decoded:
    good, misfits = [], []
    for number, text in zip(numbers, texts, strict=True):
        try:
            good.append(form.load(text))
        except Mismatch as mismatch:
            misfits.append(mismatch.of(number, text))
    return Decoded(form.batch(good), misfits)
