"""Bodies with events in the API's format, so that events read from the API can be sent again.

Each event is `{"key"?, "headers"?, "value" | "columns"}`, as written by `penstock.streams.events.to_json`;
`offset` and `time` are ignored, because the log assigns new ones.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import did_you_mean
from penstock.streams.decode import scalars
from penstock.streams.decode.json_body import BLANK, broken, split
from penstock.streams.decode.results import Decoded, Mismatch, nothing, raw_batch, shown, with_meta
from penstock.streams.decode.values import load, rows_of
from penstock.streams.events import HEADERS, KEY, META

MEMBERS = ("offset", "time", "key", "headers", "value", "columns")

_base64 = scalars.from_json(pa.binary())


def decode_events(body: bytes, schema: pa.Schema | None) -> Decoded:
    """The events of a body: an array of events, or a single event."""
    body = body.strip(BLANK)
    if not body:
        return Decoded(nothing(schema))
    try:
        texts = split(body)
    except Mismatch as mismatch:
        return broken(body, schema, mismatch)
    rows = None if schema is None else rows_of(schema)
    payloads: list[Any] = []
    keys, headers, misfits = [], [], []
    for number, text in enumerate(texts, 1):
        try:
            event = _members(load(text, exact=rows is not None and rows.exact), typed=rows is not None)
            key, header = _bytes(event, "key"), _headers(event)
            payloads.append(_bytes(event, "value") if rows is None else rows.row(event["columns"]))
        except Mismatch as mismatch:
            misfits.append(mismatch.of(number, text))
        else:
            keys.append(key)
            headers.append(header)
    batch = raw_batch(payloads) if rows is None else rows.batch(payloads)
    meta = pa.array(keys, META.field(KEY).type), pa.array(headers, META.field(HEADERS).type)
    return Decoded(with_meta(batch, *meta), misfits)


def _members(event: Any, *, typed: bool) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise Mismatch("not_an_object", f"the event is {shown(event)}, not an object with its members")
    if unknown := next((name for name in event if name not in MEMBERS), None):
        raise Mismatch("unknown_member", f"an event has no '{unknown}': {did_you_mean(unknown, MEMBERS)}")
    wanted, other = ("columns", "value") if typed else ("value", "columns")
    if wanted not in event:
        raise Mismatch("missing_field", f"the event has no '{wanted}'")
    if other in event:
        stream = "typed" if typed else "raw"
        raise Mismatch("unknown_member", f"the event has '{other}', but the stream is {stream}")
    return event


def _bytes(event: dict[str, Any], name: str) -> bytes | None:
    value = event.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    try:
        if isinstance(value, dict) and value.keys() == {"base64"}:
            made: bytes = _base64(value["base64"])
            return made
    except Mismatch:
        pass
    raise Mismatch("wrong_type", f"'{name}' is {shown(value)}, not a string or {{\"base64\": …}}")


def _headers(event: dict[str, Any]) -> list[tuple[str, str]] | None:
    value = event.get("headers")
    if not value and isinstance(value, dict | None):
        return None
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise Mismatch("wrong_type", f"'headers' is {shown(value)}, not an object of strings")
    return list(value.items())
