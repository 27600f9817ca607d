"""Expressions as Spark SQL over the columns of an event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.expressions import (
    Binary,
    Call,
    Choice,
    Expression,
    Field,
    Items,
    Literal,
    Members,
    Method,
    Unary,
)

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

OPERATORS = {
    "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "and": "AND", "or": "OR", "~": "RLIKE",
}  # fmt: skip

LEVELS = {"OR": 1, "AND": 2, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "RLIKE": 4, "+": 5, "-": 5}
"""The precedence of operators; operators that aren't listed have the highest."""

METHODS = {
    "uppercase": "upper({0})", "lowercase": "lower({0})", "capitalize": "initcap({0})", "trim": "trim({0})",
    "length": "length({0})", "string": "CAST({0} AS STRING)", "number": "CAST({0} AS DOUBLE)",
    "int64": "CAST({0} AS BIGINT)", "int32": "CAST({0} AS INT)", "float64": "CAST({0} AS DOUBLE)",
    "bool": "CAST({0} AS BOOLEAN)", "round": "round({0})", "floor": "floor({0})", "ceil": "ceil({0})",
    "abs": "abs({0})", "contains": "contains({0}, {1})", "has_prefix": "startswith({0}, {1})",
    "has_suffix": "endswith({0}, {1})", "replace_all": "replace({0}, {1}, {2})", "or": "coalesce({0}, {1})",
    "re_match": "{0} RLIKE {1}", "re_replace_all": "regexp_replace({0}, {1}, {2})",
    "join": "array_join({0}, {1})", "unique": "array_distinct({0})", "reverse": "reverse({0})",
    "ts_unix": "unix_timestamp({0})", "not": "NOT {0}",
}  # fmt: skip
"""Methods as SQL; `{0}` is the value that they are called on."""

FUNCTIONS = {
    "uuid_v4": "uuid()", "now": "current_timestamp()", "timestamp_unix": "unix_timestamp()",
    "timestamp_unix_milli": "unix_millis(current_timestamp())",
    "random_int": "CAST(floor(rand() * 9007199254740991) AS BIGINT)",
    "if": "CASE WHEN {0} THEN {1} ELSE {2} END", "lower": "lower({0})", "upper": "upper({0})",
    "len": "length({0})", "length": "length({0})", "trim": "trim({0})", "abs": "abs({0})",
    "round": "round({0}, {1})", "round/1": "round({0})", "floor": "floor({0})", "ceil": "ceil({0})",
    "concat": "concat({*})", "coalesce": "coalesce({*})", "replace": "replace({0}, {1}, {2})",
    "substr": "substr({0}, {1}, {2})", "substring": "substring({0}, {1}, {2})", "split": "split({0}, {1})",
    "to_string": "CAST({0} AS STRING)", "to_int": "CAST({0} AS BIGINT)", "to_float": "CAST({0} AS DOUBLE)",
    "to_number": "CAST({0} AS DOUBLE)", "now/0": "current_timestamp()", "isnull": "{0} IS NULL",
    "isnotnull": "{0} IS NOT NULL", "exists": "{0} IS NOT NULL", "contains": "contains({0}, {1})",
    "starts_with": "startswith({0}, {1})", "ends_with": "endswith({0}, {1})",
}  # fmt: skip


RESERVED = re.compile(
    r"all|and|any|as|both|case|cast|check|column|create|cross|else|end|except|for|from|full|group|having|in|inner"
    r"|into|is|join|left|like|natural|not|null|on|only|or|order|outer|primary|references|right|select|some|table"
    r"|then|to|true|false|union|unique|unknown|user|using|when|where|with",
    re.IGNORECASE,
)
"""Words that can't be names of columns without quotes."""


def quoted(name: str) -> str:
    """The name of a column in SQL, quoted if necessary."""
    return (
        name
        if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name)
        else "`" + name.replace("`", "``") + "`"
    )


def text_literal(text: str) -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def to_sql(expression: Expression, level: int = 0) -> str:
    """The expression in SQL; `Unmapped` if a part of it has no equivalent."""
    text, own = _sql(expression)
    return f"({text})" if own < level else text


def _sql(expression: Expression) -> tuple[str, int]:
    """The SQL text and the precedence of its outermost operator."""
    match expression:
        case Literal(value):
            return _literal(value), 9
        case Field(path) if path:
            return ".".join(map(quoted, path)), 9
        case Binary("??", left, right):
            return f"coalesce({to_sql(left)}, {to_sql(right)})", 9
        case Binary("==" | "!=" as operator, left, Literal(None)):
            return f"{to_sql(left, 5)} IS {'NOT ' * (operator == '!=')}NULL", 4
        case Binary("in", left, Items(items)):
            return f"{to_sql(left, 5)} IN ({', '.join(map(to_sql, items))})", 4
        case Binary("has", left, right):
            return f"array_contains({to_sql(left)}, {to_sql(right)})", 9
        case Binary(operator, left, right) if operator in OPERATORS:
            return _binary(OPERATORS[operator], left, right)
        case Unary("not", Binary("??", _, Literal(False)) as value):
            return f"NOT {to_sql(value)}", 3
        case Unary("not", value):  # a comparison with a missing field is NULL in SQL, but false in the source
            return f"NOT coalesce({to_sql(value)}, false)", 3
        case Unary("-", value):
            return f"-{to_sql(value, 9)}", 7
        case Choice(cases, otherwise):
            whens = " ".join(f"WHEN {to_sql(when)} THEN {to_sql(then)}" for when, then in cases)
            rest = f" ELSE {to_sql(otherwise)}" if otherwise is not None else ""
            return f"CASE {whens}{rest} END", 9
        case Items(items):
            return f"array({', '.join(map(to_sql, items))})", 9
        case Members(members):
            inside = ", ".join(f"{text_literal(name)}, {to_sql(value)}" for name, value in members)
            return f"named_struct({inside})", 9
        case Method(target, name, arguments):
            return _template(METHODS, name, (target, *arguments), f"the method '{name}'"), 9
        case Call("env", (Literal(str() as name),)):
            return text_literal(f"${{{name}}}"), 9
        case Call("random_int", arguments) if len(arguments) == 2:
            low, high = (to_sql(each, 6) for each in arguments)
            return f"CAST(floor({low} + rand() * ({high} - {low} + 1)) AS BIGINT)", 9
        case Call(name, arguments):
            return _template(FUNCTIONS, name, arguments, f"the function '{name}'"), 9
    raise Unmapped(f"{type(expression).__name__.lower()} has no equivalent in SQL")


def _binary(operator: str, left: Expression, right: Expression) -> tuple[str, int]:
    texts = [each for each in (left, right) if isinstance(each, Literal) and isinstance(each.value, str)]
    if operator == "+" and texts:  # `+` concatenates in Bloblang; Spark would add numbers
        return f"concat({to_sql(left)}, {to_sql(right)})", 9
    level = LEVELS.get(operator, 6)
    return f"{to_sql(left, level)} {operator} {to_sql(right, level + 1)}", level


def _template(table: dict[str, str], name: str, arguments: tuple[Expression, ...], what: str) -> str:
    template = table.get(f"{name}/{len(arguments)}") or table.get(name)
    if template is None:
        raise Unmapped(f"{what} has no equivalent in SQL")
    made = [to_sql(each, 5) for each in arguments]
    if "{*}" in template:
        return template.replace("{*}", ", ".join(made))
    if len(re.findall(r"\{\d\}", template)) > len(made):
        raise Unmapped(f"{what} is used in a way that has no equivalent in SQL")
    return template.format(*made)


def _literal(value: str | int | float | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_literal(value) if isinstance(value, str) else repr(value)


def ddl_of(columns: Mapping[str, str]) -> str:
    """Columns with their types as DDL; names with dots become structs."""
    tree: dict[str, Any] = {}
    for name, kind in columns.items():
        *outer, last = name.split(".")
        node = tree
        for step in outer:
            inside = node.get(step)
            node[step] = node = inside if isinstance(inside, dict) else {}
        node.setdefault(last, kind)
    return ", ".join(f"{quoted(name)} {_kind(kind)}" for name, kind in tree.items())


def _kind(kind: Any) -> str:
    if isinstance(kind, dict):
        return "STRUCT<" + ", ".join(f"{quoted(name)}: {_kind(each)}" for name, each in kind.items()) + ">"
    return str(kind)
