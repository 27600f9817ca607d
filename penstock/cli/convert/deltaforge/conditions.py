"""Conditions of DeltaForge's filters in SQL."""

from __future__ import annotations

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_sql import text_literal
from penstock.cli.convert.located import Node

OPS = {"create": "c", "update": "u", "delete": "d", "read": "r", "truncate": "t"}
COMPARISONS = {"eq": "=", "ne": "<>", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def json_path(path: str) -> str:
    """A value of the event, whose `value` is JSON text."""
    return f"get_json_object(value, '$.{path}')"


def table_condition(pattern: str) -> str:
    """The condition that the table of an event matches a pattern."""
    database, _, table = pattern.rpartition(".")
    parts = []
    for text, path in ((database, "db"), (table, "table")):
        if not text or text in ("*", "%"):
            continue
        column = (
            f"coalesce({json_path('source.schema')}, {json_path('source.db')})"
            if path == "db"
            else json_path("source.table")
        )
        like = text.replace("*", "%")
        parts.append(
            f"{column} LIKE {text_literal(like)}" if "%" in like else f"{column} = {text_literal(text)}"
        )
    return " AND ".join(parts) or "true"


def field_condition(node: Node) -> str:
    """The condition of a predicate over the row after a change."""
    path, operator, value = node.get("path"), node.get("op"), node.get("value")
    column = json_path(f"after.{path.text()}") if path is not None else "value"
    word = operator.text() if operator is not None else "eq"
    given = value.use() if value is not None else None
    if word in COMPARISONS and given is not None:
        if isinstance(given, bool):
            return f"{column} {COMPARISONS[word]} {text_literal(str(given).lower())}"
        if isinstance(given, int | float):
            return f"CAST({column} AS DOUBLE) {COMPARISONS[word]} {given}"
        return f"{column} {COMPARISONS[word]} {text_literal(str(given))}"
    if word in ("in", "not_in") and isinstance(given, list):
        inside = ", ".join(text_literal(str(each)) for each in given)
        return f"{column} {'NOT ' * (word == 'not_in')}IN ({inside})"
    if word in ("exists", "is_not_null"):
        return f"{column} IS NOT NULL"
    if word in ("not_exists", "is_null"):
        return f"{column} IS NULL"
    if word in ("contains", "regex", "matches", "starts_with", "ends_with") and isinstance(given, str):
        names = {"contains": "contains", "starts_with": "startswith", "ends_with": "endswith"}
        return f"{names.get(word, 'regexp_like')}({column}, {text_literal(given)})"
    raise Unmapped(f"the condition '{word}' was left out with its filter", "write it as a filter step")
