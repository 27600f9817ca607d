"""Changes as record batches: rows in the columns of the only table, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from penstock.connectors.cdc.changes import Changes, key_of
from penstock.connectors.cdc.envelopes import Envelope, Origin, message_batch, native_batch, schema_of
from penstock.connectors.mysql_cdc.kinds import Kind
from penstock.connectors.mysql_cdc.rows import Row
from penstock.streams.events import payload_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RowForm:
    """The columns of a table, and the conversion of its rows to events."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    keys: tuple[int, ...]
    """The columns of the primary key, by their number."""
    typed: bool
    """Whether rows stay values, which become typed columns."""
    shape: tuple[tuple[str, str], ...] = field(init=False)
    """Names and types of the columns: rows of the same shape can be in one batch."""
    _plain: list[tuple[int, Any]] = field(init=False)
    _short: bytes | None = field(init=False)

    def __post_init__(self) -> None:
        self.shape = tuple((name, kind.ddl) for name, kind in zip(self.names, self.kinds, strict=True))
        self._plain = [(i, kind.plain) for i, kind in enumerate(self.kinds) if kind.plain is not None]
        self._key_names = tuple(self.names[i] for i in self.keys)
        self._key_plain = tuple(self.kinds[i].plain for i in self.keys)
        whole = len(self.keys) == 1 and self.kinds[self.keys[0]].ddl in (
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
        )
        self._short = (
            b"{" + orjson.dumps(self.names[self.keys[0]]).replace(b"%", b"%%") + b":%d}" if whole else None
        )

    def key(self, row: Row) -> bytes | None:
        """The key of a row."""
        if self._short is not None:
            short: bytes = self._short % row[self.keys[0]]
            return short
        if not self.keys:
            return None
        parts = zip(self.keys, self._key_plain, strict=True)
        return key_of(
            self._key_names,
            [row[i] if plain is None or row[i] is None else plain(row[i]) for i, plain in parts],
        )

    def image(self, row: Row) -> Any:
        """A row as stored in an event: its values, or a JSON object."""
        return row if self.typed else self.json(row)

    def json(self, row: Row) -> bytes:
        """A row as a JSON object."""
        values = list(row)
        for i, plain in self._plain:
            if values[i] is not None:
                values[i] = plain(values[i])
        return orjson.dumps(dict(zip(self.names, values, strict=True)))

    def array(self, rows: Sequence[Any]) -> pa.Array:
        """Rows as structs; None becomes a null struct."""
        import pyarrow as pa

        blank = (None,) * len(self.names)
        columns = zip(*(blank if row is None else row for row in rows), strict=True)
        arrays = [kind.arrow(column) for kind, column in zip(self.kinds, columns, strict=True)]
        fields = [pa.field(name, each.type) for name, each in zip(self.names, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array([row is None for row in rows]))


class Encoder:
    """Encodes the changes of a flow as record batches."""

    def __init__(self, envelope: Envelope, row: str | None, origin: Origin) -> None:
        self.envelope, self.origin = envelope, origin
        self.typed = envelope == "native" and row is not None
        self.schema = payload_schema(schema_of(envelope, row))

    def batch(self, changes: Changes, form: RowForm | None) -> pa.RecordBatch:
        """The events of changes. `form` is the form of all rows, if rows are values."""
        import pyarrow as pa

        if self.envelope != "native":
            return message_batch(self.envelope, changes, self.origin)
        kind, images = self.schema.field("after").type, (changes.before, changes.after)
        if not self.typed:
            before, after = (pa.array(rows, pa.binary()).cast(kind) for rows in images)
            return native_batch(changes, before, after, self.schema)
        if form is None:  # no event has a row
            before = after = pa.nulls(len(changes), kind)
            return native_batch(changes, before, after, self.schema)
        faults: dict[int, dict[str, str]] = {}
        before, after = (self._rows(rows, form, faults) for rows in images)
        return native_batch(changes, before, after, self.schema, faults)

    def _rows(self, rows: Sequence[Any], form: RowForm, faults: dict[int, dict[str, str]]) -> pa.Array:
        """Rows converted to the columns of the flow, which may differ from those of the table.

        Rows with a value that doesn't match its column are added to `faults`.
        """
        from penstock.streams.casting import convert

        kind = self.schema.field("after").type
        made, lost = convert(form.array(rows), kind)
        if lost is not None:
            reason = _changed(form, kind)
            for i in (i for i, each in enumerate(lost.to_pylist()) if each):
                row = form.json(rows[i]).decode()
                faults[i] = {"code": "column_changed", "reason": reason, "row": row}
        return made


def _changed(form: RowForm, kind: pa.StructType) -> str:
    columns = zip(form.names, form.kinds, strict=True)
    found = [
        f"'{name}' was {column.ddl} in the table, but is {kind.field(at).type} in the pipeline"
        for name, column in columns
        if (at := kind.get_field_index(name)) >= 0 and column.arrow([]).type != kind.field(at).type
    ]
    return f"a value doesn't match its type: {', '.join(found)}"
