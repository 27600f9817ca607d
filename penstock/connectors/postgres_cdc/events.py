"""Changes as columns, and their conversion to events in one of three envelopes."""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.cdc.envelopes import KINDS, Envelope
from penstock.connectors.cdc.faults import FAULT_COLUMN
from penstock.connectors.postgres_cdc.tables import Table, Texts, struct_of
from penstock.connectors.postgres_cdc.wire import Mask
from penstock.streams.decode.results import Mismatch
from penstock.streams.events import KEY, META, RAW
from penstock.streams.schema import arrow_schema

NAMES = {**KINDS, "m": "message"}

UNAVAILABLE = '"__debezium_unavailable_value"'
"""Debezium's placeholder for a large value that was not changed, and therefore not sent."""

TIME = pa.timestamp("us", tz="UTC")

MESSAGE = pa.struct([("prefix", pa.string()), ("content", pa.binary())])

FAULT = pa.struct([("code", pa.string()), ("reason", pa.string()), ("row", pa.string())])
"""Why a row doesn't match its declared columns, and the row as JSON."""


@dataclass(frozen=True)
class Changes:
    """A batch of changes, in order and column by column."""

    op: pa.StringArray
    table: pa.StringArray
    before: pa.Array
    """Structs, or JSON objects."""
    after: pa.Array
    unchanged: pa.ListArray
    """The columns of `after` that are null because their value was not sent."""
    position: pa.StringArray
    tx: pa.StringArray
    time: pa.TimestampArray
    id: pa.StringArray
    key: pa.StringArray
    message: pa.StructArray
    fault: pa.StructArray
    xid: pa.Int64Array
    lsn: pa.Int64Array


@dataclass(frozen=True)
class Form:
    """The form in which changes become events.

    An event of a typed table has a `fault` if one of its values doesn't match its column. Such an event
    becomes a dead letter when it is read.
    """

    envelope: Envelope
    database: str
    server: str
    """The name of the flow's slot."""
    schema: str | None = None
    """The columns of the only table, if rows become structs."""
    messages: bool = False

    @property
    def struct(self) -> pa.StructType | None:
        """The type of rows that become structs; None if rows become JSON."""
        return None if self.schema is None else struct_of(self.schema)

    def ddl(self) -> str | None:
        """The columns of stored events; None: raw events with a JSON document as their value."""
        if self.envelope != "native":
            return None
        row = "STRING" if self.schema is None else f"STRUCT<{self.schema}>"
        columns = [
            "op STRING", "`table` STRING", f"before {row}", f"after {row}", "unchanged ARRAY<STRING>",
            "`position` STRING", "tx STRING", "`time` TIMESTAMP", "id STRING",
        ]  # fmt: skip
        if self.messages:
            columns.append("message STRUCT<prefix: STRING, content: BINARY>")
        if self.schema is not None:
            columns.append(FAULT_COLUMN)
        return ", ".join(columns)

    def batch(self, changes: Changes) -> pa.RecordBatch:
        """The events, with their keys."""
        if (ddl := self.ddl()) is not None:
            schema = arrow_schema(ddl)
            made = pa.RecordBatch.from_arrays(
                [getattr(changes, name) for name in schema.names], schema=schema
            )
        else:
            texts = self._debezium(changes) if self.envelope == "debezium" else self._cloud_events(changes)
            made = pa.RecordBatch.from_arrays([texts.cast(pa.binary())], schema=RAW)
        if changes.key.null_count < len(changes.key):
            made = made.append_column(META.field(KEY), changes.key.cast(pa.binary()))
        return made

    def _debezium(self, changes: Changes) -> pa.StringArray:
        time_ms = changes.time.cast(pa.int64()).cast(pa.float64())
        time_ms = pc.floor(pc.divide(time_ms, 1000.0)).cast(pa.int64()).cast(pa.string())
        names = pc.split_pattern(changes.table, ".", max_splits=1)
        source = '"source":{"connector":"postgresql","name":' + _text(self.server) + ',"db":'
        return _joined(
            '{"before":', changes.before, ',"after":', changes.after, *_message(changes, self.messages), ",",
            source + _text(self.database) + ',"schema":', _quoted(pc.list_element(names, 0)),
            ',"table":', _quoted(_last(names)), ',"txId":', changes.xid.cast(pa.string()),
            ',"lsn":', changes.lsn.cast(pa.string()), ',"ts_ms":', time_ms,
            ',"snapshot":', pc.if_else(pc.equal(changes.op, "r"), '"true"', '"false"'),
            '},"op":', _quoted(changes.op), ',"ts_ms":', time_ms, "}",
        )  # fmt: skip

    def _cloud_events(self, changes: Changes) -> pa.StringArray:
        kinds = pa.array(list(NAMES.values())).take(pc.index_in(changes.op, pa.array(list(NAMES))))
        time = pc.strftime(changes.time, "%Y-%m-%dT%H:%M:%SZ")
        subject = pc.coalesce(changes.table, pc.struct_field(changes.message, "prefix"))
        return _joined(
            '{"specversion":"1.0","id":', _quoted(changes.id),
            ',"source":' + _text(f"/postgresql/{self.database}") + ',"type":"penstock.postgresql.',
            kinds, '","subject":', _quoted(subject), ',"time":', _quoted(time),
            ',"datacontenttype":"application/json","data":{"op":', _quoted(changes.op),
            ',"before":', changes.before, ',"after":', changes.after,
            ',"unchanged":', _lists(changes.unchanged), *_message(changes, self.messages),
            ',"position":', _quoted(changes.position), ',"tx":', _quoted(changes.tx), "}}",
        )  # fmt: skip


def split(changes: Changes, moved: Mask, old_key: pa.StringArray) -> Changes:
    """The changes with each update of a key split into a delete of the old and a create of the new row."""
    at = np.repeat(np.arange(len(moved)), 1 + moved)
    again = np.concatenate(([False], at[1:] == at[:-1]))
    gone, made = pa.array(moved[at] & ~again), pa.array(again)
    of = {field.name: getattr(changes, field.name).take(pa.array(at)) for field in fields(changes)}

    def without(name: str, mask: pa.BooleanArray) -> pa.Array:
        return pc.if_else(mask, pa.scalar(None, of[name].type), of[name])

    of["op"] = pc.if_else(gone, "d", pc.if_else(made, "c", of["op"]))
    of["before"] = without("before", made)
    of |= {name: without(name, gone) for name in ("after", "unchanged")}
    of["key"] = pc.if_else(gone, old_key.take(pa.array(at)), of["key"])
    of["id"] = pc.if_else(gone, pc.binary_join_element_wise(of["id"], "old", "-"), of["id"])
    return Changes(**of)


def fault_of(table: Table, texts: Texts, row: int, fault: Mismatch) -> dict[str, str]:
    """The fault of a row."""
    (value,) = table.objects([column.slice(row, 1) for column in texts]).to_pylist()
    return {"code": fault.code, "reason": str(fault), "row": value}


def _joined(*parts: pa.Array | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="null")


def _text(text: str) -> str:
    return orjson.dumps(text).decode()


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    """Texts as JSON; each of the few distinct texts is encoded only once."""
    values = pc.dictionary_encode(texts)
    made = [_text(text) for text in values.dictionary.to_pylist()]
    return pa.array(made, pa.string()).take(values.indices)


def _last(names: pa.ListArray) -> pa.StringArray:
    return pa.array([None if each is None else each[-1] for each in names.to_pylist()], pa.string())


def _lists(lists: pa.ListArray) -> pa.StringArray:
    if lists.null_count == len(lists):
        return pa.nulls(len(lists), pa.string())
    texts = (None if each is None else orjson.dumps(each).decode() for each in lists.to_pylist())
    return pa.array(texts, pa.string())


def _message(changes: Changes, wanted: bool) -> tuple[pa.Array | str, ...]:
    if not wanted:
        return ()
    made = [
        None
        if each is None
        else orjson.dumps({**each, "content": base64.b64encode(each["content"]).decode()}).decode()
        for each in changes.message.to_pylist()
    ]
    return (',"message":', pa.array(made, pa.string()))
