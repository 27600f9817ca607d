"""The event formats of changes: native columns, or messages in the format of Debezium or CloudEvents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import orjson

from penstock.connectors.cdc.changes import Changes
from penstock.connectors.cdc.faults import FAULT, FAULT_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa

Envelope = Literal["native", "debezium", "cloudevents"]

ENVELOPES = (
    "Event format. `native`: the columns `op`, `table`, `before`, `after`, `position`, `tx`, `time` "
    "and `id`. `debezium`, `cloudevents`: one column `value` with JSON as written by Debezium without "
    "schemas, or with a CloudEvent 1.0."
)
"""The description of the field `envelope` of a source."""

NATIVE = (
    "op STRING, `table` STRING, before {row}, after {row}, `position` STRING, tx STRING, `time` TIMESTAMP, "
    "id STRING"
)

KINDS = {"c": "insert", "u": "update", "d": "delete", "r": "read", "t": "truncate"}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Origin:
    """The origin of changes, as stated in Debezium and CloudEvents messages."""

    connector: str
    """The kind of database, such as `mysql`."""
    name: str
    """The name of the flow."""
    about: Callable[[str, str, str | None], Mapping[str, Any]]
    """Fields of Debezium's `source` for a table, a position and a transaction."""


def schema_of(envelope: Envelope, row: str | None) -> str | None:
    """The columns of events as DDL; None: raw events.

    `row` has the columns of the only table; None: rows are JSON text.
    """
    if envelope != "native":
        return None
    if row is None:
        return NATIVE.format(row="STRING")
    return f"{NATIVE.format(row=f'STRUCT<{row}>')}, {FAULT_COLUMN}"


def native_batch(
    changes: Changes,
    before: pa.Array,
    after: pa.Array,
    schema: pa.Schema,
    faults: Mapping[int, Mapping[str, str]] | None = None,
) -> pa.RecordBatch:
    """Events of the envelope `native`, with rows in the types of their columns.

    `faults` has the faults of rows that don't match the schema, by the number of the event.
    """
    import pyarrow as pa

    given = {
        "op": changes.op, "table": changes.table, "position": changes.position, "tx": changes.tx,
        "id": changes.id,
    }  # fmt: skip
    columns = {name: pa.array(values, pa.string()) for name, values in given.items()}
    columns |= {"before": before, "after": after}
    if FAULT in schema.names:
        kind = schema.field(FAULT).type
        found = [faults.get(i) for i in range(len(changes))] if faults else None
        columns[FAULT] = pa.nulls(len(changes), kind) if found is None else pa.array(found, kind)
    columns["time"] = pa.array(changes.time_us, pa.int64()).cast(schema.field("time").type)
    return _keyed(
        pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema), changes
    )


def message_batch(envelope: Envelope, changes: Changes, origin: Origin) -> pa.RecordBatch:
    """Events of the envelopes `debezium` and `cloudevents`. Rows of `changes` are JSON text."""
    from penstock.streams.decode.results import raw_batch

    message = _debezium if envelope == "debezium" else _cloudevent
    return _keyed(raw_batch([message(changes, i, origin) for i in range(len(changes))]), changes)


def _keyed(batch: pa.RecordBatch, changes: Changes) -> pa.RecordBatch:
    import pyarrow as pa

    from penstock.streams.decode.results import with_meta
    from penstock.streams.events import META

    headers = pa.nulls(len(changes), META.field("_headers").type)
    return with_meta(batch, pa.array(changes.key, pa.binary()), headers)


def _debezium(changes: Changes, i: int, origin: Origin) -> bytes:
    """A Debezium message as its JSON converter writes it with `schemas.enable=false`."""
    op, time_us, tx = changes.op[i], changes.time_us[i], changes.tx[i]
    source = {
        "connector": origin.connector,
        "name": origin.name,
        "ts_ms": time_us // 1000,
        "snapshot": "true" if op == "r" else "false",
        **origin.about(changes.table[i], changes.position[i], tx),
    }
    rest = {"op": op, "ts_ms": time_us // 1000, "transaction": {"id": tx} if tx is not None else None}
    return b'{"before":%b,"after":%b,"source":%b,%b' % (
        _row(changes.before[i]),
        _row(changes.after[i]),
        orjson.dumps(source),
        orjson.dumps(rest)[1:],
    )


def _cloudevent(changes: Changes, i: int, origin: Origin) -> bytes:
    """A CloudEvent in structured mode; `data` has the columns of the envelope `native`."""
    head = {
        "specversion": "1.0",
        "id": changes.id[i],
        "source": f"/{origin.connector}/{changes.table[i].partition('.')[0]}",
        "type": f"penstock.{origin.connector}.{KINDS[changes.op[i]]}",
        "subject": changes.table[i],
        "time": (EPOCH + timedelta(microseconds=changes.time_us[i])).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
    }
    data = {
        "op": changes.op[i], "table": changes.table[i], "position": changes.position[i], "tx": changes.tx[i]
    }  # fmt: skip
    rows = b'"before":%b,"after":%b' % (_row(changes.before[i]), _row(changes.after[i]))
    return b'%b,"data":%b,%b}}' % (orjson.dumps(head)[:-1], orjson.dumps(data)[:-1], rows)


def _row(image: Any) -> bytes:
    return b"null" if image is None else image
