"""Reading a table or query page by page, in the order of its column and key."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.received import Ended, Received, Receiver
from penstock.connectors.sql.client import TableName
from penstock.connectors.sql.database import Database, connect
from penstock.connectors.sql.problems import unknown_table
from penstock.connectors.sql.rows import Unfit
from penstock.connectors.sql.types import Column
from penstock.errors import Invalid, PenstockError, Problem, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.sql.source import SqlSource

MARK = "penstock_"
"""Prefix of the position columns, which are read in addition to the source's columns."""

ROWS = "q"
"""The alias of the table or query in a statement."""


@dataclass(frozen=True)
class Layout:
    """The columns that a source reads, and the columns that order its rows."""

    columns: list[Column]
    order: list[Column]
    """The increasing column, if there is one, and the key."""


def layout_of(database: Database, source: SqlSource) -> Layout:
    """The layout of the table or query; raises `Invalid` if the table doesn't exist or has no order."""
    if source.table is not None:
        table = TableName.of(source.table)
        columns = database.columns(table)
        if not columns:
            raise Invalid(unknown_table(table, database.tables(), creatable=False))
    else:
        columns = database.describe(source.query or "")
    known = {column.name: column for column in columns}
    asked = [(source.column, "column")] if source.column is not None else []
    asked += [(name, f"key[{i}]") for i, name in enumerate(source.key or ())]
    problems = [
        Problem(
            code="unknown_column",
            message=f"there is no column '{name}'",
            path=path,
            hint=did_you_mean(name, known),
        )
        for name, path in asked
        if name not in known
    ]
    if problems:
        raise Invalid(*problems)
    names = dict.fromkeys([*([source.column] if source.column else ()), *_key(database, source)])
    order = [known[name] for name in names]
    for column in order:
        if column.kind in ("float", "double", "json"):
            path = "column" if column.name == source.column else "key"
            message = f"'{column.name}' is {column.type}, which can't be used as a position"
            hint = "use an integer, timestamp or text column; in a 'query', cast it to one"
            raise Invalid(Problem(code="wrong_type", message=message, path=path, hint=hint))
    return Layout(columns, order)


def _key(database: Database, source: SqlSource) -> Sequence[str]:
    """The columns that distinguish rows with the same value of `column`."""
    if source.key is not None:
        return source.key
    keys = database.unique_keys(TableName.of(source.table)) if source.table is not None else []
    if any(set(key) == {source.column} for key in keys):
        return ()
    if not keys:
        message = f"'{source.table}' has no unique index"
        hint = "set unique columns in 'key', or create a primary key"
        raise Invalid(Problem(code="no_unique_key", message=message, path="key", hint=hint))
    return keys[0]


class SqlReceiver(Receiver):
    """Polls a table or query for the rows after the last row that was read."""

    def __init__(self, source: SqlSource, schema: pa.Schema) -> None:
        self.source, self.schema = source, schema
        self._database: Database | None = None
        self._layout: Layout | None = None
        self._after: list[str] | None = None
        self._due = 0.0
        self._stopped = threading.Event()
        self._horizon: deque[tuple[float, str]] = deque()
        """Observations of the column's greatest value: the time, and that value."""

    def open(self, position: str | None) -> None:
        self._database = connect(self.source.place, self.source.connect_timeout_s)
        with self._explaining() as database:
            self._layout = layout_of(database, self.source)
            given = [column.name for column in self._layout.columns]
            for name in self.schema.names:
                if name not in given:
                    message = f"there is no column '{name}'"
                    hint = did_you_mean(name, given)
                    raise Invalid(Problem(code="unknown_column", message=message, path="schema", hint=hint))
        self._after = self._restored(position)

    def receive(self, wait_s: float) -> Received | None:
        pause = min(wait_s, self._due - time.monotonic())
        if pause > 0 and (self._stopped.wait(pause) or time.monotonic() < self._due):
            return None
        with self._explaining() as database:
            until = self._until(database)
            rows = self._page(database, until) if until != "" else None
        count = rows.num_rows if rows is not None else 0
        if count < self.source.page:
            if self.source.mode == "snapshot" and not count:
                raise Ended
            self._due = time.monotonic() + self.source.poll_ms / 1000
        if rows is None or not count:
            return None
        names = self.schema.names
        marks = rows.slice(count - 1).select(range(len(names), rows.num_columns))
        self._after = [str(column[0].as_py()) for column in marks.columns]
        (batch,) = rows.select(range(len(names))).combine_chunks().to_batches()
        return Received(batch, self._position())

    def stop(self) -> None:
        self._stopped.set()
        if (database := self._database) is not None:
            database.cancel()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[Database]:
        assert self._database is not None
        try:
            yield self._database
        except Unfit as error:
            hint = "declare the column in 'schema' with a larger type, or cast it in a 'query'"
            raise Invalid(Problem(code="wrong_value", message=str(error), path="schema", hint=hint)) from None
        except self._database.errors as error:
            raise in_query(self._database.explained(error), self.source) from None

    def _page(self, database: Database, until: str | None) -> pa.Table:
        """The next rows, with the position columns at the end."""
        import pyarrow as pa

        assert self._layout is not None
        known = {column.name: column for column in self._layout.columns}
        order = self._layout.order
        marks = [f"{database.as_text(column)} AS {MARK}{i}" for i, column in enumerate(order)]
        chosen = [database.selected(known[name]) for name in self.schema.names]
        conditions = [f"{database.name(column.name)} IS NOT NULL" for column in order]
        if self._after is not None:
            conditions += list(_behind(database, order, self._after))
        if until is not None:
            conditions.append(f"{database.name(order[0].name)} <= {database.literal(order[0], until)}")
        query = (
            f"SELECT {', '.join([*chosen, *marks])} FROM {self._from(database)} "
            f"WHERE {' AND '.join(conditions)} "
            f"ORDER BY {', '.join(_own(database, column) for column in order)} LIMIT {self.source.page}"
        )
        fields = [pa.field(f"{MARK}{i}", pa.string()) for i in range(len(order))]
        return database.read(query, pa.schema([*self.schema, *fields]))

    def _until(self, database: Database) -> str | None:
        """The value of the column up to which rows are read now; None: all rows, "": no rows.

        A row may become visible after a row with a greater value. The greatest value is therefore recorded,
        and rows up to it are read `lag_ms` later.
        """
        lag_ms = self.source.lag_ms
        if self.source.mode == "snapshot" or not lag_ms:
            return None
        assert self._layout is not None
        column = self._layout.order[0]
        now = time.monotonic()
        if not self._horizon or now - self._horizon[-1][0] >= lag_ms / 10_000:
            query = (
                f"SELECT {database.as_text(column)} FROM {self._from(database)} "
                f"WHERE {database.name(column.name)} IS NOT NULL "
                f"ORDER BY {_own(database, column)} DESC LIMIT 1"
            )
            for (greatest,) in database.rows(query):
                self._horizon.append((now, _plain(greatest)))
        settled = ""
        while self._horizon and self._horizon[0][0] <= now - lag_ms / 1000:
            settled = self._horizon[0][1]
            if len(self._horizon) == 1 or self._horizon[1][0] > now - lag_ms / 1000:
                break
            self._horizon.popleft()
        return settled

    def _from(self, database: Database) -> str:
        if self.source.table is not None:
            return f"{database.table(TableName.of(self.source.table))} {ROWS}"
        return f"({self.source.query}) {ROWS}"

    def _names(self) -> list[str]:
        assert self._layout is not None
        return [column.name for column in self._layout.order]

    def _position(self) -> str:
        about = {"table": self.source.table, "order": self._names(), "after": self._after}
        return json.dumps(about, ensure_ascii=False)

    def _restored(self, position: str | None) -> list[str] | None:
        """The position of the last row read; None if it is from another table or another order."""
        if position is None:
            return None
        about: dict[str, Any] = json.loads(position)
        same = about["table"] == self.source.table and about["order"] == self._names()
        return [str(text) for text in about["after"]] if same else None


def _own(database: Database, column: Column) -> str:
    """A column qualified with its table: the name alone may mean a column of the result, which is text."""
    return f"{ROWS}.{database.name(column.name)}"


def in_query(error: PenstockError, source: SqlSource) -> PenstockError:
    """The error with the path `table` or `query`, whichever the source reads."""
    path = "table" if source.table is not None else "query"
    problems = [
        problem.model_copy(update={"path": path}) if problem.path == "table" else problem
        for problem in error.problems
    ]
    return type(error)(*problems)


def _behind(database: Database, order: Sequence[Column], after: Sequence[str]) -> Iterator[str]:
    """Conditions for rows after a position in an order; the first condition can use an index."""
    names = [database.name(column.name) for column in order]
    values = [database.literal(column, text) for column, text in zip(order, after, strict=True)]
    if len(names) > 1:
        yield f"{names[0]} >= {values[0]}"
    later = f"{names[-1]} > {values[-1]}"
    for name, value in zip(names[-2::-1], values[-2::-1], strict=True):
        later = f"({name} > {value} OR ({name} = {value} AND {later}))"
    yield later


def _plain(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
