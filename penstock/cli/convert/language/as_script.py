"""Mappings as JavaScript over events whose `value` is JSON text: this needs no schema."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.expressions import (
    Binary,
    Call,
    Choice,
    Deleted,
    Expression,
    Field,
    Items,
    Literal,
    Members,
    Meta,
    Method,
    Unary,
    parts,
)

OPERATORS = {
    "==": "===", "!=": "!==", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "+": "+", "-": "-", "*": "*",
    "/": "/", "%": "%", "and": "&&", "or": "||", "??": "??",
}  # fmt: skip

METHODS = {
    "uppercase": "{0}.toUpperCase()", "lowercase": "{0}.toLowerCase()", "trim": "{0}.trim()",
    "capitalize": "{0}.replace(/\\b\\w/g, c => c.toUpperCase())", "length": "{0}.length",
    "string": "String({0})", "number": "Number({0})", "int64": "Math.trunc(Number({0}))",
    "int32": "Math.trunc(Number({0}))", "float64": "Number({0})", "bool": "({0} === true || {0} === 'true')",
    "round": "Math.round({0})", "floor": "Math.floor({0})", "ceil": "Math.ceil({0})", "abs": "Math.abs({0})",
    "contains": "{0}.includes({1})", "has_prefix": "{0}.startsWith({1})", "has_suffix": "{0}.endsWith({1})",
    "replace_all": "{0}.split({1}).join({2})", "split": "{0}.split({1})", "join": "{0}.join({1})",
    "or": "({0} ?? {1})", "not_null": "notNull({0})", "keys": "Object.keys({0})",
    "values": "Object.values({0})", "unique": "[...new Set({0})]", "reverse": "[...{0}].reverse()",
    "sum": "{0}.reduce((a, b) => a + b, 0)", "max": "Math.max(...{0})", "min": "Math.min(...{0})",
    "parse_json": "JSON.parse({0})", "format_json": "JSON.stringify({0})", "slice": "{0}.slice({1}, {2})",
    "slice/1": "{0}.slice({1})", "index": "{0}[{1}]", "append": "[...{0}, {1}]",
    "re_match": "new RegExp({1}).test({0})", "re_replace_all": "{0}.replace(new RegExp({1}, 'g'), {2})",
    "exists": "({0}?.[{1}] !== undefined)",
}  # fmt: skip
"""Methods in JavaScript; `{0}` is the value that they are called on."""

FUNCTIONS = {
    "uuid_v4": "uuid()", "now": "new Date().toISOString()",
    "timestamp_unix": "Math.floor(Date.now() / 1000)", "timestamp_unix_milli": "Date.now()",
    "random_int": "Math.floor(Math.random() * 9007199254740991)",
    "random_int/2": "Math.floor({0} + Math.random() * ({1} - {0} + 1))", "content": "event.value",
    "event_time": "event.$meta.time", "event_offset": "event.$meta.offset",
}  # fmt: skip

HELPERS = {
    "put(": """\
function put(root, path, value) {
  if (value === undefined) return root
  if (path.length === 0) return value
  const made = root !== null && typeof root === 'object' ? root : {}
  let node = made
  for (const name of path.slice(0, -1)) {
    if (node[name] === null || typeof node[name] !== 'object') node[name] = {}
    node = node[name]
  }
  if (value === DELETED) delete node[path.at(-1)]
  else node[path.at(-1)] = value
  return made
}
""",
    "uuid(": """\
function uuid() {
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, c => {
    const random = Math.floor(Math.random() * 16)
    return (c === 'x' ? random : (random & 3) | 8).toString(16)
  })
}
""",
    "notNull(": """\
function notNull(value) {
  if (value === null || value === undefined) throw new Error('value is null')
  return value
}
""",
}


@dataclass(frozen=True)
class Assignment:
    """A statement of a mapping: `target` is `root`, `meta` or `let`, and `path` the part that is set."""

    target: str
    path: tuple[str, ...]
    value: Expression
    line: int = 0


def script_of(assignments: Sequence[Assignment], *, keeps: bool) -> str:
    """The script of a mapping; `keeps`: it changes the event instead of creating a new one."""
    body = ["const self = JSON.parse(event.value)"]
    changes = any(each.target == "root" for each in assignments)
    if changes:
        body.append("let root = JSON.parse(event.value)" if keeps else "let root")
    for each in assignments:
        body += _statement(each)
    if changes:
        body.append("if (root !== undefined) event.value = JSON.stringify(root)")
    return _script([*body, "kept.push(event)"])


def routing_script(cases: Sequence[tuple[Expression | None, Sequence[str]]]) -> str:
    """The script that routes each event to the sinks of the first matching case, and drops other events."""
    body = ["const self = JSON.parse(event.value)"]
    for i, (check, sinks) in enumerate(cases):
        condition = "true" if check is None else to_script(check)
        body.append(f"{'else ' * (i > 0)}if ({condition}) event.$meta.sink = {json.dumps(list(sinks))}")
    body += ["else continue", "kept.push(event)"]
    return _script(body)


def filter_script(keep: Expression) -> str:
    """A script that keeps the events for which an expression is true."""
    return _script(["const self = JSON.parse(event.value)", f"if ({to_script(keep)}) kept.push(event)"])


def _script(body: list[str]) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    main = f"""\
function processBatch(events) {{
  const kept = []
  for (const event of events) {{
    if (event.value === null) {{
      kept.push(event)
      continue
    }}
{lines}
  }}
  return kept
}}
"""
    helpers = "".join(text for call, text in HELPERS.items() if call in main)
    deleted = "const DELETED = Symbol('deleted')\n" if "DELETED" in main + helpers else ""
    return deleted + helpers + main


def _statement(each: Assignment) -> list[str]:
    value = to_script(each.value)
    if each.target == "let":
        return [f"const ${each.path[0]} = {value}"]
    if each.target == "meta":
        (name,) = each.path
        if name in ("kafka_key", "key"):
            return [f"event.$meta.key = String({value})"]
        return [f"event.$meta.headers = {{...event.$meta.headers, {json.dumps(name)}: String({value})}}"]
    if each.value == Field():
        value = "JSON.parse(event.value)"  # a copy: `this` must not change
    made = [f"root = put(root, {json.dumps(list(each.path))}, {value})"]
    if not each.path and any(isinstance(part, Deleted) for part in parts(each.value)):
        made.append("if (root === DELETED) continue")
    return made


def to_script(expression: Expression) -> str:
    """The expression in JavaScript; `Unmapped` if a part of it has no equivalent."""
    match expression:
        case Literal(value):
            return json.dumps(value, ensure_ascii=False)
        case Field(path):
            return _path(path)
        case Meta(name):
            if name in ("kafka_key", "key"):
                return "(event.$meta.key ?? null)"
            return f"(event.$meta.headers?.[{json.dumps(name)}] ?? null)"
        case Deleted():
            return "DELETED"
        case Binary("in", left, right):
            return f"{to_script(right)}.includes({to_script(left)})"
        case Binary("has", left, right):
            return f"{to_script(left)}.includes({to_script(right)})"
        case Binary("~", left, right):
            return f"new RegExp({to_script(right)}).test({to_script(left)})"
        case Binary(operator, left, right):
            return f"({to_script(left)} {OPERATORS[operator]} {to_script(right)})"
        case Unary(operator, value):
            return f"{'!' if operator == 'not' else '-'}{to_script(value)}"
        case Choice(cases, otherwise):
            made = "undefined" if otherwise is None else to_script(otherwise)
            for when, then in reversed(cases):
                made = f"({to_script(when)} ? {to_script(then)} : {made})"
            return made
        case Items(items):
            return f"[{', '.join(map(to_script, items))}]"
        case Members(members):
            inside = ", ".join(f"{json.dumps(name)}: {to_script(value)}" for name, value in members)
            return f"({{{inside}}})"
        case Call("var", (Literal(str() as name),)):
            return f"${name}"
        case Call("env", (Literal(str() as name),)):
            return json.dumps(f"${{{name}}}")
        case Method(target, name, arguments):
            return _template(METHODS, name, (target, *arguments), f"the method '{name}'")
        case Call(name, arguments):
            return _template(FUNCTIONS, name, arguments, f"the function '{name}'")
    raise Unmapped(f"{type(expression).__name__.lower()} has no equivalent in JavaScript")


def _path(path: tuple[str, ...]) -> str:
    if not path:
        return "self"
    steps = [
        f"?.{name}" if re.fullmatch(r"[A-Za-z_]\w*", name) else f"?.[{json.dumps(name)}]" for name in path
    ]
    return f"(self{''.join(steps)} ?? null)"


def _template(table: dict[str, str], name: str, arguments: tuple[Expression, ...], what: str) -> str:
    template = (
        table.get(f"{name}/{len(arguments)}") or table.get(f"{name}/{len(arguments) - 1}") or table.get(name)
    )
    if template is None:
        raise Unmapped(f"{what} has no equivalent")
    made = [to_script(each) for each in arguments]
    if len(set(re.findall(r"\{\d\}", template))) > len(made):
        raise Unmapped(f"{what} is used in a way that has no equivalent")
    for i, text in enumerate(made):
        template = template.replace(f"{{{i}}}", text)
    return template
