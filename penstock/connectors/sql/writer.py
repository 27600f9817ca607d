"""Writes batches to a table: each in one transaction with its delivery id, without rejected rows."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, SinkWriter
from penstock.connectors.sql.database import Database, Target, connect
from penstock.connectors.sql.deliveries import Deliveries
from penstock.connectors.sql.problems import Flaw
from penstock.connectors.sql.target import target_of
from penstock.connectors.sql.types import JSON, changed, is_json
from penstock.errors import Retryable
from penstock.frames.hidden import EVENT

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from penstock.connectors.sql.sink import SqlSink

    Rows = np.ndarray[Any, np.dtype[np.int64]]
    Mask = np.ndarray[Any, np.dtype[np.bool_]]

Flaws = dict[int, Flaw]
"""The number of a row in its batch → why it was rejected."""

Action = Literal["insert", "upsert", "delete"]

ROW = "$row"
"""The number of a row in its batch, as a column."""


class SqlWriter(SinkWriter):
    """Writes batches from the driver through one database connection."""

    def __init__(self, sink: SqlSink) -> None:
        self.sink = sink
        self._database: Database | None = None
        self._target: Target | None = None
        self._schema: pa.Schema | None = None
        self._cancelled = threading.Event()

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        table = events.table()
        with self._connection() as database:
            target, deliveries = self._prepared(database, table.schema)
            database.begin()
            if not deliveries.claim(delivery, table.num_rows):
                known = deliveries.known(delivery)
                database.rollback()
                return Delivered(*known)
            flaws = self._rows(database, target, table)
            rejected = _rejected(table, flaws)
            if rejected:
                deliveries.reject(delivery, rejected)
            deliveries.prune(delivery)
            self.permitted()
            self._go_on()
            database.commit()
            return Delivered(table.num_rows - len(rejected), rejected)

    def cancel(self) -> None:
        self._cancelled.set()
        if (database := self._database) is not None:
            database.cancel()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._target = self._schema = None

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Database]:
        """The connection. A failure closes it, which rolls back, and the next attempt reconnects."""
        self._go_on()
        try:
            if self._database is None:
                create = self.sink.create != "never"
                self._database = connect(self.sink.place, self.sink.connect_timeout_s, create=create)
            database = self._database
            try:
                yield database
            except database.errors as error:
                raise database.explained(error) from None
        except BaseException:
            self.close()
            self._go_on()
            raise

    def _go_on(self) -> None:
        if self._cancelled.is_set():
            raise Retryable("the write was cancelled")

    def _prepared(self, database: Database, schema: pa.Schema) -> tuple[Target, Deliveries]:
        """The target table and the table of deliveries, for events of a schema."""
        name = self.sink.table_name
        deliveries = Deliveries(database, name.beside(self.sink.deliveries))
        if self._target is None or self._schema != schema:
            import pyarrow as pa

            columns = pa.schema([field for field in schema if field.name in self._columns(schema)])
            self._target = target_of(database, name, columns, self.sink.key or (), self.sink.create)
            deliveries.ensure()
            self._schema = schema
            database.prepare(self._target, _own(columns, self._target))
        return self._target, deliveries

    def _columns(self, schema: pa.Schema) -> list[str]:
        op = self.sink.op.column if self.sink.op is not None else None
        return [name for name in schema.names if name not in (op, EVENT)]

    def _rows(self, database: Database, target: Target, table: pa.Table) -> Flaws:
        """Write the events; returns the rows that can't be written, with the reasons."""
        import numpy as np

        data = table.select(self._columns(table.schema))
        data = data.rename_columns(_own(data.schema, target).names)
        flaws = _changed(data, target)
        if self.sink.mode == "insert":
            return flaws | self._sift(database, data, _without(data, flaws), target, "insert")
        deleted, keys = self._deleted(table), data.select(list(target.key))
        flaws = {row: flaw for row, flaw in flaws.items() if not deleted[row]}  # a delete uses only the key
        flaws |= _changed(keys, target) | _without_key(keys)
        pending = _without(data, flaws)
        while len(pending):
            last = _last_of_each(keys, pending)
            bad = self._sift(database, keys, last[deleted[last]], target, "delete")
            bad |= self._upserted(database, data, last[~deleted[last]], target)
            flaws |= bad
            # The row before a rejected row is now the last row of its key.
            pending = _earlier(keys, np.setdiff1d(pending, last), bad) if bad else pending[:0]
        return flaws

    def _upserted(self, database: Database, data: pa.Table, rows: Rows, target: Target) -> Flaws:
        bad = self._sift(database, data, rows, target, "upsert")
        again = [row for row, flaw in bad.items() if flaw.code == "duplicate_key"]
        if again and len(bad) < len(rows):
            import numpy as np

            # Until now, another row may have had the same value in another unique index.
            kept = {row: flaw for row, flaw in bad.items() if row not in again}
            return kept | self._sift(database, data, np.array(again, np.int64), target, "upsert")
        return bad

    def _deleted(self, table: pa.Table) -> Mask:
        """For each event, whether its row is to be deleted."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        if (op := self.sink.op) is None:
            return np.zeros(table.num_rows, bool)
        words = table.column(op.column)
        found = pc.is_in(words, value_set=pa.array(op.delete, words.type))
        return np.asarray(found.to_numpy(), bool)

    def _sift(self, database: Database, data: pa.Table, rows: Rows, target: Target, action: Action) -> Flaws:
        """Write rows; rows that can't be written are found by bisection, and all others are written."""
        import pyarrow as pa

        if not len(rows):
            return {}
        whole = len(rows) == data.num_rows
        chosen = data if whole else data.take(pa.array(rows, pa.int64()))
        write = {"insert": database.insert, "upsert": database.upsert, "delete": database.delete}[action]
        flaws: Flaws = {}
        parts = [(0, len(rows))]
        while parts:
            first, count = parts.pop()
            self._go_on()
            try:
                with database.savepoint():
                    write(target, chosen.slice(first, count))
            except database.errors as error:
                flaw = database.flaw(error)
                if flaw is None:
                    raise
                if count == 1:
                    flaws[int(rows[first])] = flaw
                    continue
                half = count // 2
                parts += [(first + half, count - half), (first, half)]  # the first half is written first
        return flaws


def _own(events: pa.Schema, target: Target) -> pa.Schema:
    """The schema of the events with the names of the table's columns."""
    import pyarrow as pa

    names = {name.lower(): name for name in target.columns}
    return pa.schema(
        [
            field if field.name in target.columns else field.with_name(names[field.name.lower()])
            for field in events
        ]
    )


def _changed(data: pa.Table, target: Target) -> Flaws:
    """Rows with a value that the table would store as a different value."""
    import pyarrow.compute as pc

    flaws: Flaws = {}
    for name in data.column_names:
        column = target.columns[name]
        values = data.column(name)
        for offset, chunk in _chunks(values):
            mask = changed(chunk, column)
            if mask is None or not pc.any(mask).as_py():
                continue
            for row in pc.indices_nonzero(mask).to_pylist():
                text = str(chunk[row].as_py())
                message = f"'{name}' is {column.type}, which would change the value {text}"
                flaws.setdefault(offset + row, Flaw("would_change", message))
    return flaws


def _chunks(values: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    offset = 0
    for chunk in values.chunks:
        yield offset, chunk
        offset += len(chunk)


def _without_key(keys: pa.Table) -> Flaws:
    """Rows with a null in their key."""
    import pyarrow.compute as pc

    flaws: Flaws = {}
    for name in keys.column_names:
        if keys.column(name).null_count:
            for row in pc.indices_nonzero(keys.column(name).is_null()).to_pylist():
                flaws.setdefault(row, Flaw("null_key", f"the key '{name}' is null"))
    return flaws


def _without(data: pa.Table, flaws: Flaws) -> Rows:
    """The numbers of all rows without a flaw."""
    import numpy as np

    return np.setdiff1d(np.arange(data.num_rows), np.fromiter(flaws, np.int64))


def _last_of_each(keys: pa.Table, rows: Rows) -> Rows:
    """The number of the last row of each key, in ascending order."""
    import numpy as np
    import pyarrow as pa

    numbers = pa.array(rows, pa.int64())
    chosen = keys.take(numbers).append_column(ROW, numbers)
    found = chosen.group_by(keys.column_names).aggregate([(ROW, "max")])
    return np.sort(found.column(f"{ROW}_max").to_numpy())


def _earlier(keys: pa.Table, rows: Rows, bad: Flaws) -> Rows:
    """The rows in `rows` with the key of a rejected row."""
    import numpy as np

    named = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    lost = {named[row] for row in bad}
    return np.array([row for row in rows if named[row] in lost], np.int64)


def _rejected(table: pa.Table, flaws: Flaws) -> list[Rejected]:
    """The events of rejected rows, with the reasons."""
    import pyarrow as pa

    if not flaws:
        return []
    rows = sorted(flaws)
    chosen = table.take(pa.array(rows, pa.int64())).combine_chunks()
    events = chosen.column(EVENT).to_pylist() if EVENT in chosen.column_names else [None] * len(rows)
    visible = [name for name in chosen.column_names if name != EVENT]
    columns = {name: _plain(chosen.column(name)) for name in visible}
    made = []
    for number, row in enumerate(rows):
        event = {name: values[number] for name, values in columns.items()}
        flaw = flaws[row]
        text = json.dumps(event, ensure_ascii=False)
        made.append(Rejected(text, flaw.code, flaw.message, events[number]))
    return made


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """The values as JSON values."""
    from penstock.streams.rendering import plain_values

    array = column.combine_chunks()
    values = plain_values(array)
    if not is_json(array.type):
        return values
    texts = [None if value is None else value[JSON] for value in values]
    return [None if text is None else json.loads(text) for text in texts]
