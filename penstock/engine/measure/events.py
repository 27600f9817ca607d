"""The events that a flow is measured on: recorded, from a finite source, or generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.base import Source
from penstock.connectors.generate import GenerateSource
from penstock.connectors.stream.source import StreamSource
from penstock.engine.plan.flow import Flow
from penstock.errors import Conflict, Problem
from penstock.frames.logs import LOGS
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 10_000

Kind = Literal["recorded", "source", "generated"]


@dataclass(frozen=True)
class Input:
    """Events to measure with."""

    kind: Kind
    about: str
    """The origin of the events, in words."""
    source: Callable[[int | None], Source] = field(repr=False)
    """Returns the source of the first events, up to a number; None: of all events."""
    events: int | None
    """The number of events, counted without the engine; None if the source cannot count them."""
    bytes: int | None = None


def input_of(flow: Flow, wanted: int) -> Input:
    """The last `wanted` events of the stream that a flow reads, or the events of its finite source.

    Events are generated into a stream without events, whose directory must then be writable.
    """
    source = flow.source.component
    place = source.reads(flow.site)
    if place is not None:
        return _recorded(source, place, wanted) or _generated(source, place, wanted)
    if isinstance(source, GenerateSource):
        count = wanted if source.count is None else min(wanted, source.count)

        def generate(limit: int | None) -> Source:
            most = count if limit is None else min(limit, count)
            return source.model_copy(update={"count": most, "rate": None})

        return Input("source", "events of the source 'generate', without its rate", generate, count)
    if "finite" in type(source).model_fields:
        finite = source.model_copy(update={"finite": True})
        kind = source.type  # type: ignore[attr-defined]
        about = f"all current events of the source '{kind}'"
        return Input("source", about, lambda _: finite, None)
    message = "this source has no end and no recorded events"
    hint = "publish the source to a stream, and read that stream in the pipeline"
    raise Conflict(Problem(code="not_measurable", message=message, path="spec.source", hint=hint))


def _recorded(source: Source, place: StreamPlace, wanted: int) -> Input | None:
    """The newest readable events of a stream; None if there are none."""
    log = LOGS.log(place.directory)
    end = log.bounds().next
    first = max(log.bounds().first, end - wanted)
    events, size = 0, 0.0
    for span in log.storage.spans(first):
        count = min(span.next, end) - max(span.base, first)
        if span.lost is None and count > 0:
            events += count
            size += span.raw_bytes * count / (span.next - span.base)
    if not events:
        return None
    about = f"the last {events:,} events of the stream '{place.id}'"
    return Input("recorded", about, _range(source, place, first, end), events, round(size))


def _range(source: Source, place: StreamPlace, first: int, end: int) -> Callable[[int | None], Source]:
    def stream(limit: int | None) -> Source:
        stop = end if limit is None else min(end, first + limit)
        metadata = getattr(source, "metadata", False)
        return StreamSource(
            stream=place.id, position=f"offset:{first}", until=f"offset:{stop}", metadata=metadata
        )

    return stream


def _generated(source: Source, place: StreamPlace, wanted: int) -> Input:
    from penstock.streams.schema import arrow_schema

    if place.spec.schema_ is None:
        message = f"the stream '{place.id}' has no events, and no schema to generate some from"
        hint = "send events to it first, or declare a schema"
        raise Conflict(Problem(code="no_events", message=message, path="spec.source", hint=hint))
    schema, log = arrow_schema(place.spec.schema_), LOGS.log(place.directory)
    size = 0
    for first in range(0, wanted, CHUNK):
        batch = generated(schema, first, min(CHUNK, wanted - first))
        size += batch.nbytes
        log.append(batch)
    about = f"{wanted:,} events generated from the schema: the stream '{place.id}' has no events here"
    return Input("generated", about, _range(source, place, 0, wanted), wanted, size)


def generated(schema: pa.Schema, first: int, count: int) -> pa.RecordBatch:
    """Events of a schema, numbered from `first` on. Columns of nested types are null."""
    import pyarrow as pa

    numbers = range(first, first + count)
    columns = [pa.array([_value(column, n) for n in numbers], column.type) for column in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(column: pa.Field, n: int) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        return n % 2 == 0
    if pa.types.is_integer(kind):
        return n % 100 if kind.bit_width == 8 else n % 30_000 if kind.bit_width == 16 else n
    if pa.types.is_floating(kind):
        return n % 10_000 / 100
    if pa.types.is_decimal(kind):
        return Decimal(n % 10)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f"{column.name}-{n % 1000}"
    if pa.types.is_binary(kind):
        return f"{column.name}-{n % 1000}".encode()
    if pa.types.is_timestamp(kind):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=n)
        return moment if kind.tz else moment.replace(tzinfo=None)
    return date(2026, 1, 1) + timedelta(days=n % 365) if pa.types.is_date(kind) else None
