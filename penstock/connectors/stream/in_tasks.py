"""Appends to streams in Kafka by tasks: they write the frames, and the driver adds them to the journal."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.stream.form import demands
from penstock.frames.streams.read import prepare_kafka
from penstock.streams.config import read_config
from penstock.streams.events import META, payload_schema
from penstock.streams.frames import Body, Placed
from penstock.streams.home import StreamPlace
from penstock.streams.kafka.clients import LARGEST
from penstock.streams.kafka.cluster import topic_of
from penstock.streams.kafka.topics import FRAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER = struct.Struct("<qqqii")
"""Place or -1, size, size in memory, events, bits of the `META` columns; see KafkaAppender.java."""


def appender(spark: SparkSession, columns: pa.Schema, place: StreamPlace) -> Any:
    """The Java function that writes events with these columns to a stream; None if only the driver can."""
    config = None
    with contextlib.suppress(OSError, ValueError):
        config = read_config(place.directory)
    if config is None or config.kafka is None or config.spec.storage != "kafka":
        return None
    if not _fits(columns, config.spec.schema_):
        return None
    from penstock.spark.java_classes import java_class
    from penstock.spark.planned_source import KAFKA_WRITER

    prepare_kafka(spark)
    wal = config.spec.wal
    settings = {
        "topic": topic_of(config.kafka, config.id, place.directory.name),
        "partition": FRAMES,
        "client": config.kafka.java_client(),
        "compression": wal.compression,
        "max_events": wal.batch.max_events,
        "max_bytes": wal.batch.max_bytes,
        "largest": LARGEST,
        "columns": _text(columns),
        "stored": [_text(schema) for schema in _stored(config.spec.schema_)],
    }
    return java_class(spark, KAFKA_WRITER).of(json.dumps(settings))


def _fits(columns: pa.Schema, ddl: str | None) -> bool:
    """Whether the columns have the same memory layout as in the stream, and no event can be rejected."""
    payload = payload_schema(ddl)
    given = list(columns)
    own, beside = given[: len(payload)], given[len(payload) :]
    if demands(ddl) or [field.name for field in own] != payload.names:
        return False
    if [field.name for field in beside] != [name for name in META.names if name in columns.names]:
        return False
    wanted = [*payload, *(META.field(field.name) for field in beside)]
    return all(_alike(field.type, to.type) for field, to in zip(given, wanted, strict=True))


def _alike(have: pa.DataType, to: pa.DataType) -> bool:
    """Whether values of both types have the same byte representation."""
    return bool(have == to or (pa.types.is_string(have) and pa.types.is_binary(to)))


def _stored(ddl: str | None) -> list[pa.Schema]:
    """The stored columns, by the bits of the metadata that events have: 1 for the key, 2 for the headers."""
    payload = payload_schema(ddl)
    return [
        pa.schema([*payload, *(field for bit, field in enumerate(META) if bits & 1 << bit)])
        for bits in range(1 << len(META))
    ]


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def events_of(answer: bytes) -> int:
    """The number of events in a frame that a task has written."""
    return int(_ANSWER.unpack_from(answer)[3])


def bodies_of(answers: list[bytes], ddl: str | None) -> list[Body]:
    """The frames that tasks have written, and those that they could not write."""
    schemas = [schema.serialize().to_pybytes() for schema in _stored(ddl)]
    found: list[Body] = []
    for answer in answers:
        place, size, raw, count, beside = _ANSWER.unpack_from(answer)
        if place < 0:
            found.append(Body(answer[_ANSWER.size :], count, raw))
        else:
            found.append(Placed(schemas[beside], count, raw, place, size))
    return found
