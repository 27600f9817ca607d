"""Mappings as steps of a pipeline: SQL where the columns are known, JavaScript over JSON text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_script import Assignment, filter_script, script_of
from penstock.cli.convert.language.as_sql import quoted, text_literal, to_sql
from penstock.cli.convert.language.expressions import (
    Binary,
    Choice,
    Deleted,
    Expression,
    Field,
    Literal,
    Members,
    Meta,
    Unary,
    parts,
)

AS_TEXT = {"type": "map", "set": {"value": "CAST(value AS STRING)"}, "keep": False}
"""Converts a raw event to text; its key and headers stay in hidden columns."""


@dataclass
class Steps:
    """The steps so far, and the columns after them; None: one column `value` with JSON text."""

    columns: list[str] | None = None
    made: list[dict[str, Any]] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    """Columns in addition to the text, for templates of sinks."""

    def add(self, **step: Any) -> dict[str, Any]:
        """Append a step."""
        self.made.append(step)
        return step

    def to_text(self) -> None:
        """Encode the columns as one JSON text."""
        if self.columns is not None:
            self.add(type="encode", format="json")
            self.columns = None

    def mapping(self, assignments: Sequence[Assignment], *, keeps: bool) -> None:
        """Append the steps of a mapping; `keeps`: it modifies the event instead of creating a new one."""
        if self.columns is not None:
            try:
                steps, columns = _in_sql(assignments, self.columns, keeps=keeps)
                self.made += steps
                self.columns = columns
                return
            except Unmapped:
                script = script_of(assignments, keeps=keeps)
                self.to_text()
        else:
            script = script_of(assignments, keeps=keeps)
        self.add(type="javascript", inline=script)

    def keep(self, condition: Expression) -> None:
        """Append a filter."""
        if self.columns is not None:
            try:
                self.add(type="filter", where=_sql(condition, self.columns))
                return
            except Unmapped:
                script = filter_script(condition)
                self.to_text()
        else:
            script = filter_script(condition)
        self.add(type="javascript", inline=script)

    def key(self, expression: Expression) -> None:
        """Set the key of events."""
        if expression == Meta("kafka_key"):
            return  # the event already has its key
        self.mapping([Assignment("meta", ("kafka_key",), expression)], keeps=True)

    def column(self, name: str, expression: Expression) -> str:
        """The column that contains the value of an expression; it is added if necessary."""
        if self.columns is not None:
            if (
                isinstance(expression, Field)
                and len(expression.path) == 1
                and expression.path[0] in self.columns
            ):
                return expression.path[0]
            self.add(type="map", set={name: f"CAST({_sql(expression, self.columns)} AS STRING)"})
            self.columns.append(name)
            return name
        if isinstance(expression, Field) and expression.path:
            path = "$" + "".join(
                f".{step}" if step.isidentifier() else f"['{step}']" for step in expression.path
            )
            self.add(type="map", set={name: f"get_json_object(value, {text_literal(path)})"})
            self.extra.append(name)
            return name
        raise Unmapped("only a field of the event can be used here")


def _sql(expression: Expression, columns: Sequence[str]) -> str:
    for part in parts(expression):
        if isinstance(part, Field) and part.path and part.path[0] not in columns:
            raise Unmapped(f"there is no column '{part.path[0]}'")
    return to_sql(expression)


def _in_sql(
    assignments: Sequence[Assignment], columns: Sequence[str], *, keeps: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """A mapping as SQL: filters first, then all columns at once, since `this` is the unmodified event."""
    steps: list[dict[str, Any]] = []
    made: dict[str, str] = {}
    removed: list[str] = []
    assigned = False
    for each in assignments:
        if each.target == "meta" and each.path[0] == "kafka_key":
            made["_key"] = f"CAST({_sql(each.value, columns)} AS STRING)"
        elif each.target != "root" or len(each.path) > 1:
            raise Unmapped("this statement has no equivalent in SQL")
        elif not each.path:
            condition, whole = _whole(each.value)
            if condition is not None:
                steps.append({"type": "filter", "where": _sql(condition, columns)})
            if isinstance(whole, Members):
                made = {name: _sql(value, columns) for name, value in whole.members}
                keeps, assigned, removed = False, True, []
            elif whole is not None:
                made, removed, keeps = {}, [], True
        elif isinstance(each.value, Deleted):
            removed.append(each.path[0])
            made.pop(each.path[0], None)
        else:
            if any(isinstance(part, Choice) and part.otherwise is None for part in parts(each.value)):
                raise Unmapped("a condition without 'else' has no equivalent in SQL")
            made[each.path[0]] = _sql(each.value, columns)
            assigned = True
    if not assigned:
        keeps = True  # without assignments the event stays unchanged
    if made:
        steps.append({"type": "map", "set": made, **({} if keeps else {"keep": False})})
    gone = [name for name in removed if name in columns and keeps]
    if gone:
        steps.append({"type": "drop_fields", "fields": gone})
    kept = [name for name in columns if name not in gone] if keeps else []
    return steps, [*kept, *(name for name in made if name not in kept)]


def _whole(value: Expression) -> tuple[Expression | None, Expression | None]:
    """The effect of an assignment to the whole event: the condition for keeping it, and the new event."""
    match value:
        case Deleted():
            return Literal(False), None
        case Field(()):
            return None, value
        case Members():
            return None, value
        case Choice(((when, Deleted()),), None | Field(()) as rest):
            return Unary("not", Binary("??", when, Literal(False))), rest
        case Choice(((when, Field(())),), Deleted()):
            return Binary("??", when, Literal(False)), Field()
    raise Unmapped("this assignment to the whole event has no equivalent in SQL")


def columns_of(ddl: str) -> list[str]:
    """The names of the columns of a schema."""
    from penstock.streams.schema import arrow_schema

    return list(arrow_schema(ddl).names)


def select_of(names: Sequence[str]) -> dict[str, str]:
    """A `set` that selects columns as they are."""
    return {name: quoted(name) for name in names}
