"""The table that a sink writes to: found, created or extended, and matched with the columns of the events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from penstock.connectors.sql.client import TableName
from penstock.connectors.sql.database import Database, Target
from penstock.connectors.sql.problems import unknown_table
from penstock.connectors.sql.types import Column, kind_of
from penstock.errors import Invalid, Problem, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Create = Literal["never", "if_missing", "evolve"]

TRANSACTIONAL = ("", "InnoDB", "ROCKSDB", "Aria")


def target_of(
    database: Database, table: TableName, events: pa.Schema, key: Sequence[str], create: Create
) -> Target:
    """The table for events of a schema; raises `Invalid` with all problems.

    `create` determines whether a missing table or column is created.
    """
    columns = database.columns(table)
    if not columns:
        if create == "never":
            raise Invalid(unknown_table(table, database.tables()))
        _create(database, table, events, key)
        columns = database.columns(table)
    matched = matches(events.names, columns)
    missing = [name for name in events.names if name not in matched]
    if missing and create == "evolve":
        for name in missing:
            database.add_column(table, name, database.type_for(events.field(name).type))
        columns = database.columns(table)
        matched = matches(events.names, columns)
    names = {name: matched[name].name for name in key if name in matched}
    problems = [
        *_unknown(database, table, events, columns, matched, create),
        *_unfilled(columns, matched),
        *key_problems(database, table, list(names.values())),
        *engine_problems(database, table),
    ]
    if problems:
        raise Invalid(*problems)
    own = tuple(names.values())
    others = [each for each in database.unique_keys(table) if set(each) != set(own)] if own else []
    return Target(table, {each.name: each for each in matched.values()}, own, only_key=not others)


def matches(names: Sequence[str], columns: Sequence[Column]) -> dict[str, Column]:
    """The table column for each event column that has one; case is ignored if no name matches exactly."""
    exact = {column.name: column for column in columns}
    loose: dict[str, list[Column]] = {}
    for column in columns:
        loose.setdefault(column.name.lower(), []).append(column)
    found = {}
    for name in names:
        similar = loose.get(name.lower(), [])
        if name in exact:
            found[name] = exact[name]
        elif len(similar) == 1 and similar[0].name not in names:
            found[name] = similar[0]
    return found


def key_problems(database: Database, table: TableName, key: Sequence[str]) -> Iterator[Problem]:
    """A problem if no unique index has exactly the columns of the key."""
    if not key:
        return
    keys = database.unique_keys(table)
    if not any(set(each) == set(key) for each in keys):
        has = "; it has " + ", ".join(f"({', '.join(each)})" for each in keys) if keys else ""
        yield Problem(
            code="no_unique_key",
            message=f"the table '{table}' has no primary key or unique index of ({', '.join(key)}){has}",
            path="key",
            hint="create one, or set 'key' to the columns of an existing one",
        )


def engine_problems(database: Database, table: TableName) -> Iterator[Problem]:
    """A problem if the table has no transactions, without which a batch could be partially written."""
    engine_of = getattr(database, "engine_of", None)
    engine = engine_of(table) if engine_of is not None else ""
    if engine not in TRANSACTIONAL:
        hint = f"ALTER TABLE {table} ENGINE=InnoDB"
        message = f"the table '{table}' has the engine {engine}, which doesn't support transactions"
        yield Problem(code="no_transactions", message=message, path="table", hint=hint)


def _create(database: Database, table: TableName, events: pa.Schema, key: Sequence[str]) -> None:
    kinds = {field.name: database.type_for(field.type) for field in events}
    for name in key:
        if database.key_type is not None and kind_of(events.field(name).type) == "text":
            kinds[name] = database.key_type
    create_once(database, table, kinds, key)


def create_once(database: Database, table: TableName, columns: Mapping[str, str], key: Sequence[str]) -> None:
    """Create a table, unless another process creates it concurrently."""
    try:
        database.create(table, columns, key)
    except database.errors:
        if not database.columns(table):
            raise


def _unknown(
    database: Database,
    table: TableName,
    events: pa.Schema,
    columns: Sequence[Column],
    matched: dict[str, Column],
    create: Create,
) -> Iterator[Problem]:
    for field in events:
        column = matched.get(field.name)
        if column is None:
            hint = did_you_mean(field.name, [each.name for each in columns])
            more = "" if create == "evolve" else ", or set `create: evolve`"
            yield Problem(
                code="unknown_column",
                message=f"the table '{table}' has no column '{field.name}'",
                path="table",
                hint=f"{hint}; drop the column in a processor{more}",
            )
        elif column.generated:
            message = f"the column '{column.name}' is generated by the database"
            hint = "drop the column in a processor"
            yield Problem(code="generated_column", message=message, path="table", hint=hint)
        elif not database.holds(field.type, column):
            yield Problem(
                code="wrong_type",
                message=f"'{column.name}' is {column.type}, which can't hold {_named(field.type)}",
                path="table",
                hint="cast it in a processor, or change the column",
            )


def _unfilled(columns: Sequence[Column], matched: dict[str, Column]) -> Iterator[Problem]:
    given = {column.name for column in matched.values()}
    for column in columns:
        if column.name not in given and not (column.nullable or column.filled or column.generated):
            message = f"the events have no column '{column.name}', which is NOT NULL and has no default"
            hint = "add it in a processor, or give the column a default"
            yield Problem(code="missing_column", message=message, path="table", hint=hint)


def _named(kind: pa.DataType) -> str:
    family = kind_of(kind)
    if family == "integer":
        return {8: "TINYINT", 16: "SMALLINT", 32: "INT"}.get(kind.bit_width, "BIGINT")
    if family == "decimal":
        return f"DECIMAL({kind.precision},{kind.scale})"
    names = {"text": "STRING", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}
    return names.get(family, "nested values" if family == "json" else family.upper())
