"""Content types and their decoders."""

from __future__ import annotations

from collections.abc import Callable
from email.message import Message
from functools import lru_cache

import pyarrow as pa

from penstock.errors import Problem, UnsupportedMediaType
from penstock.specs.stream import Timestamps
from penstock.streams.decode.arrow_body import decode_arrow
from penstock.streams.decode.csv_body import decode_csv
from penstock.streams.decode.epochs import as_kept, as_sent
from penstock.streams.decode.event_body import decode_events
from penstock.streams.decode.json_body import BLANK, decode_document, decode_lines, decode_one
from penstock.streams.decode.results import Decoded
from penstock.streams.decode.text_body import decode_bytes, decode_text
from penstock.streams.events import RAW, Event, Form

JSON = "application/json"

Decoder = Callable[[bytes, pa.Schema | None], Decoded]

ANY: dict[str, Decoder] = {
    JSON: decode_document,
    "application/x-ndjson": decode_lines,
    "application/jsonl": decode_lines,
    "application/ndjson": decode_lines,
    "application/vnd.penstock.events+json": decode_events,
    "application/vnd.apache.arrow.stream": decode_arrow,
}
"""Decoders for raw and typed streams; `text/csv`, which has a parameter, is handled separately."""

RAW_ONLY: dict[str, Callable[[bytes], Decoded]] = {
    "text/plain": decode_text,
    "application/octet-stream": decode_bytes,
}

CSV = "text/csv"
BINARY = ("application/vnd.apache.arrow.stream", "application/octet-stream")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNSAID = "application/x-www-form-urlencoded"
"""The default content type of `curl -d` and many clients."""

UTF_8 = ("utf-8", "utf8", "us-ascii")


def decode_as(
    content_type: str | None, body: bytes, schema: pa.Schema | None, timestamps: Timestamps
) -> Decoded:
    """The events of a body; raises `UnsupportedMediaType` if the stream does not accept its content type."""
    name, parameters = _named(content_type, body)
    if (charset := parameters.get("charset", "utf-8").lower()) not in UTF_8:
        raise _refusal(f"the charset '{charset}' is not UTF-8", schema)
    if name not in BINARY:
        body = body.removeprefix(BYTE_ORDER_MARK)
    if timestamps != "iso" and schema is not None and name not in BINARY:
        return as_kept(decode_as(content_type, body, as_sent(schema, timestamps), "iso"), schema)
    if name == CSV:
        return decode_csv(body, schema, header=parameters.get("header", "present").lower() != "absent")
    if name in ANY:
        return ANY[name](body, schema)
    if name not in RAW_ONLY:
        raise _refusal(f"a body of type '{name}' is not accepted", schema)
    if schema is not None:
        raise _refusal(f"a body of type '{name}' has no columns, and this stream is typed", schema)
    return RAW_ONLY[name](body)


def decode_alone(content_type: str | None, body: bytes, form: Form, timestamps: Timestamps) -> Event | None:
    """The event of a body with a single JSON event; None if `decode_as` has to decode the body."""
    name, parameters = _named(content_type, body)
    if name != JSON or parameters.get("charset", "utf-8").lower() not in UTF_8:
        return None
    if timestamps != "iso" and form.schema is not RAW:
        return None
    return decode_one(body, form)


def accepted(schema: pa.Schema | None) -> list[str]:
    """The content types that a stream accepts."""
    return [*ANY, CSV, *(RAW_ONLY if schema is None else ())]


@lru_cache(maxsize=256)
def _parse(content_type: str) -> tuple[str, dict[str, str]]:
    header = Message()
    header["content-type"] = content_type
    parameters = {name.lower(): value for name, value in header.get_params(failobj=[])[1:]}
    return header.get_content_type() if "/" in content_type else content_type, parameters


def _named(content_type: str | None, body: bytes) -> tuple[str, dict[str, str]]:
    """The name and the parameters of a content type, guessed if the client has not set one."""
    name, parameters = _parse(content_type) if content_type else (UNSAID, {})
    return _guess(body) if name == UNSAID else name, parameters


def _guess(body: bytes) -> str:
    return JSON if body.lstrip(BLANK)[:1] in (b"{", b"[") else "text/plain"


def _refusal(message: str, schema: pa.Schema | None) -> UnsupportedMediaType:
    hint = "set Content-Type to one of: " + ", ".join(accepted(schema))
    return UnsupportedMediaType(Problem(code="unsupported_media_type", message=message, hint=hint))
