"""Sample events of a test run, converted to a table with the columns of the source.

An event is an object with its columns. Its metadata is in `$meta`: `key`, `headers` and `time`. An event of a
raw source has `value`, `key` and `headers`; a plain string is its value, and a value that is not a string
becomes JSON. Output events of a test run have the same form, so they can be the input of another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.runtime.sql_queries import SHOWN_AS_THEY_ARE
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.frames.hidden import EVENT, EVENT_TYPE
from penstock.streams.decode import decode, times
from penstock.streams.decode.results import Mismatch, shown
from penstock.streams.decode.values import rows_of
from penstock.streams.events import HEADERS, KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

META = "$meta"
MEMBERS = ("offset", "time", "key", "headers", "sinks")
"""The members of `$meta`. `offset` and `sinks` are ignored: samples are numbered from 0, and steps choose
sinks."""

MOST_EVENTS = 1_000
MOST_BYTES = 10 * 1024 * 1024
"""The maximum size of the samples of a test run in bytes."""

RAW = ("value", "key", "headers")
BESIDE = {"_offset": "offset", "_time": "time", "_key": "key", "_headers": "headers"}
RAW_BESIDE = {**BESIDE, "key": "key", "headers": "headers"}
"""Columns of raw events that hold metadata, by name."""


@dataclass(frozen=True)
class Text:
    """Events in the form in which they are sent to a source."""

    body: bytes
    content_type: str | None = None


Given = Sequence[Any] | Text


@dataclass(frozen=True)
class Samples:
    """Events in the form in which a source passes them to the first step."""

    table: pa.Table
    """The columns of the events, and `$event`."""
    schema: StructType
    warnings: list[Problem] = field(default_factory=list)


@dataclass
class _Read:
    """Parsed events: their payloads and metadata."""

    payload: pa.RecordBatch
    known: list[dict[str, Any]]
    warnings: list[Problem] = field(default_factory=list)


def read_samples(
    given: Given,
    columns: StructType | None,
    spark: SparkSession,
    at: str = "events",
    *,
    known: bool = True,
) -> Samples:
    """The samples for a source with these columns; None: infer the columns from the samples.

    `known` is true if the source is a stream, whose events have metadata; metadata that the source does not
    provide is ignored, since the steps of a flow would not see it. Raises `Invalid` with a problem for each
    event that does not match; `at` is their path in the document or request.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    if columns is None:
        given = [json.loads(text) for text in _json_texts(given, at)] if isinstance(given, Text) else given
        columns = _inferred(given, spark, at)
    _require_types(columns, at)
    raw = (known and columns.names[:3] == list(RAW)) or columns.names == ["value"]
    beside = {} if not known else RAW_BESIDE if raw else BESIDE
    payload = StructType([column for column in columns.fields if column.name not in beside])
    schema = to_arrow_schema(payload, timezone="UTC")
    read = _from_text(given, schema, raw, at) if isinstance(given, Text) else _each(given, schema, raw, at)
    whole = StructType([*columns.fields, *_struct(f"`{EVENT}` {EVENT_TYPE}").fields])
    arrow = to_arrow_schema(whole, timezone="UTC")
    events = [{"offset": i, **told} if known else {} for i, told in enumerate(read.known)]
    arrays = [
        read.payload.column(column.name)
        if column.name in schema.names
        else pa.array([event.get(beside[column.name]) for event in events], column.type)
        for column in list(arrow)[:-1]
    ]
    hidden = pa.array([{**event, "sample": i} for i, event in enumerate(events)], arrow.field(EVENT).type)
    warnings = read.warnings if known else [*read.warnings, *_untold(read.known, at)]
    return Samples(pa.Table.from_arrays([*arrays, hidden], schema=arrow), whole, warnings)


def _each(events: Sequence[Any], schema: pa.Schema, raw: bool, at: str) -> _Read:
    """Read events that are JSON values."""
    _require_few(len(events), at)
    rows, payloads, known, problems, size = rows_of(schema), [], [], [], 0
    extra: dict[str, int] = {}
    for i, event in enumerate(events):
        try:
            columns, meta = _parts(event, raw)
            text = json.dumps(columns).encode()
            payloads.append(rows.load(text))
            known.append(_known(meta))
        except Mismatch as mismatch:
            problems.append(Problem(code=mismatch.code, message=str(mismatch), path=f"{at}[{i}]"))
            continue
        size += len(text)
        for name in columns:
            if name not in schema.names:
                extra.setdefault(name, i)
    if size > MOST_BYTES:
        problems.append(_too_much(at))
    if problems:
        raise Invalid(*problems)
    warnings = [_ignored(name, schema.names, f"{at}[{i}]") for name, i in extra.items()]
    return _Read(rows.batch(payloads), known, warnings)


def _parts(event: Any, raw: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The payload of an event, and its metadata."""
    if raw and isinstance(event, str):
        return {"value": event}, {}
    if not isinstance(event, Mapping):
        text = ", or the text of its value" if raw else ""
        raise Mismatch("not_an_object", f"the event is {shown(event)}, not an object with its columns{text}")
    meta = event.get(META) or {}
    if not isinstance(meta, Mapping):
        raise Mismatch("wrong_type", f"'{META}' is {shown(meta)}, not an object")
    columns = {name: value for name, value in event.items() if name != META}
    if not raw:
        return columns, dict(meta)
    if "value" not in columns:
        raise Mismatch("missing_field", "the event has no 'value', but its source is raw")
    value = columns["value"]
    told = {name: columns.pop(name) for name in RAW[1:] if columns.get(name) is not None}
    if not isinstance(value, str | None):
        value = json.dumps(value, ensure_ascii=False)
    return {**columns, "value": value}, {**meta, **told}


def _known(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `$event` that a sample may set."""
    for name in meta:
        if name not in MEMBERS:
            raise Mismatch("unknown_member", f"'{META}' has no '{name}': {did_you_mean(name, MEMBERS)}")
    key, headers, time = (meta.get(name) for name in ("key", "headers", "time"))
    if not isinstance(key, str | None):
        raise Mismatch("wrong_type", f"the key is {shown(key)}, not a string")
    strings = isinstance(headers, Mapping) and all(isinstance(text, str) for text in headers.values())
    if headers is not None and not strings:
        raise Mismatch("wrong_type", f"'headers' is {shown(headers)}, not an object of strings")
    return {
        "key": key,
        "headers": list(headers.items()) if headers is not None else None,
        "time": None if time is None else times.instant(time),
    }


def _from_text(given: Text, schema: pa.Schema, raw: bool, at: str) -> _Read:
    """Read events in the form in which they are sent to a stream, with the decoder of streams."""
    if len(given.body) > MOST_BYTES:
        raise Invalid(_too_much(at))
    found = decode(given.body, given.content_type, None if raw else schema)
    if found.misfits:
        raise Invalid(
            *(Problem(code=m.code, message=f"line {m.line}: {m.reason}", path=at) for m in found.misfits)
        )
    batch = found.batch
    _require_few(batch.num_rows, at)

    def column(name: str) -> list[Any]:
        at = batch.schema.get_field_index(name)
        return batch.column(at).to_pylist() if at >= 0 else [None] * batch.num_rows

    known = [
        {"key": None if key is None else _text(key), "headers": headers}
        for key, headers in zip(column(KEY), column(HEADERS), strict=True)
    ]
    if raw:
        values = [None if value is None else _text(value) for value in column("value")]
        batch = pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=schema)
    return _Read(batch.select(schema.names), known)


def _json_texts(given: Text, at: str) -> list[str]:
    """The JSON texts of events without a declared schema."""
    if (given.content_type or "").startswith("text/csv"):
        import pyarrow.csv

        try:
            rows = pyarrow.csv.read_csv(pa.BufferReader(given.body)).to_pylist()
        except pa.ArrowInvalid as error:
            raise Invalid(Problem(code="not_csv", message=f"not CSV: {error}", path=at)) from None
        return [json.dumps(row, default=str) for row in rows]
    raw = _from_text(given, pa.schema([("value", pa.string())]), True, at)
    return [str(text) for text in raw.payload.column(0).to_pylist()]


def _inferred(events: Sequence[Any], spark: SparkSession, at: str) -> StructType:
    """The columns of events, inferred as Spark infers the columns of JSON files."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, StructType

    _require_few(len(events), at)
    objects = [
        {name: value for name, value in event.items() if name != META}
        for event in events
        if isinstance(event, Mapping)
    ]
    text = json.dumps(objects)
    if len(text) > MOST_BYTES:
        raise Invalid(_too_much(at))
    frame = spark.createDataFrame([(0,)], "zero INT")
    (row,) = frame.select(f.schema_of_json(f.lit(text)).alias("ddl")).collect()
    (found,) = _struct(f"events {row.ddl}").fields
    if isinstance(found.dataType, ArrayType) and isinstance(found.dataType.elementType, StructType):
        return found.dataType.elementType
    message = "the columns of the source are not declared and can't be inferred from the samples"
    hint = "declare the 'schema' of the source, or use JSON objects as events"
    raise Invalid(Problem(code="schema_unknown", message=message, path=at, hint=hint))


def _struct(ddl: str) -> StructType:
    from pyspark.sql.types import StructType

    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def _require_types(columns: StructType, at: str) -> None:
    for column in columns.fields:
        if column.dataType.typeName().partition("(")[0] not in SHOWN_AS_THEY_ARE:
            message = f"'{column.name}' is a {column.dataType.simpleString()}, which samples can't represent"
            raise Invalid(Problem(code="unsupported_type", message=message, path=at))


def _require_few(events: int, at: str) -> None:
    if events > MOST_EVENTS:
        message = f"too many events for a test run: {events}"
        raise Invalid(
            Problem(code="too_many_events", message=message, path=at, hint=f"at most {MOST_EVENTS}")
        )


def _too_much(at: str) -> Problem:
    message = f"the events are larger than {MOST_BYTES} bytes"
    return Problem(code="too_many_events", message=message, path=at, hint="use fewer or smaller events")


def _ignored(name: str, columns: Sequence[str], path: str) -> Problem:
    return Problem(
        code="unknown_column",
        message=f"the source has no column '{name}': it is ignored",
        path=path,
        hint=did_you_mean(name, columns),
    )


def _untold(known: Sequence[Mapping[str, Any]], at: str) -> Iterator[Problem]:
    """A warning for each member of `$meta` that events of the source do not have."""
    for name in ("key", "headers", "time"):
        for i, event in enumerate(known):
            if event.get(name) is not None:
                yield Problem(
                    code="unknown_member",
                    message=f"events of this source have no {name}: '{name}' is ignored",
                    path=f"{at}[{i}]",
                    hint="only events of a stream have key, headers and time; a step can set key and headers",
                )
                break


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
