"""A parser for PDL, the pipe language of PADAS: each stage becomes steps of a pipeline."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_sql import quoted, to_sql
from penstock.cli.convert.language.expressions import (
    Binary,
    Call,
    Expression,
    Field,
    Items,
    Literal,
    Unary,
    parts,
)

TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?)"""
    r"""|(?P<name>[A-Za-z_][\w:.]*)|(?P<sign>==|!=|>=|<=|~=|\?=|&&|\|\||[-+*/%!<>=(),\[\]])"""
)
LEVELS = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "~": 4, "has": 4, "in": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
WORDS = {"&&": "and", "||": "or", "=": "==", "~=": "~", "?=": "has"}
AGGREGATES = {
    "count": "count({0})", "sum": "sum({0})", "avg": "avg({0})", "mean": "avg({0})", "min": "min({0})",
    "max": "max({0})", "distinct_count": "count(DISTINCT {0})", "dc": "count(DISTINCT {0})",
    "stddev": "stddev({0})", "stdev": "stddev({0})", "variance": "variance({0})", "var": "variance({0})",
    "median": "median({0})", "first": "first({0})", "last": "last({0})", "values": "collect_set({0})",
    "list": "collect_list({0})",
}  # fmt: skip
SPAN = re.compile(r"\btimespan\s*=\s*(\d+)(ms|s|m|h|d)\b", re.IGNORECASE)
KINDS = ("tumbling", "sliding", "hopping", "session")


@dataclass
class Program:
    """Steps of a pipeline, and the columns that they read and create."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)
    """Columns that the input must have, each with the type that its use implies."""
    made: set[str] = field(default_factory=set)
    projects: bool = False
    """Whether the output has only the columns that are named."""
    refused: list[tuple[str, Unmapped]] = field(default_factory=list)
    """Stages that have no equivalent."""


def parse_program(text: str, program: Program | None = None) -> Program:
    """The steps of a program. Stages without an equivalent are in `refused`."""
    found = program or Program()
    for stage in split_stages(text):
        try:
            _stage(stage, found)
        except Unmapped as reason:
            found.refused.append((stage, reason))
    return found


def split_stages(text: str) -> list[str]:
    """The stages of a program, separated by pipes outside quotes and brackets."""
    stages, start, depth, at = [], 0, 0, 0
    while at < len(text):
        character = text[at]
        if character in "\"'":
            end = re.compile(rf"(?:[^{character}\\]|\\.)*{character}").match(text, at + 1)
            at = end.end() if end else len(text)
            continue
        depth += (character in "([") - (character in ")]")
        if text.startswith("||", at):
            at += 2
            continue
        if character == "|" and depth == 0:
            stages.append(text[start:at])
            start = at + 1
        at += 1
    return [stage.strip() for stage in [*stages, text[start:]] if stage.strip()]


def _stage(stage: str, program: Program) -> None:
    word, _, rest = stage.partition(" ")
    handler = STAGES.get(word.lower())
    if SPAN.search(stage):
        _window(stage, program)
    elif handler is not None and not re.match(r"\s*(==?|!=|~=)", rest):
        if not rest.strip():
            raise Unmapped(f"'{word}' has no name")
        handler(rest.strip(), program)
    elif re.match(r"(temporal|correlate)\b", stage):
        raise Unmapped("a correlation over time has no equivalent", "use a window step with emit: events")
    else:
        condition = parse_condition(stage)
        _reads(condition, program)
        program.steps.append({"type": "filter", "where": to_sql(condition)})


def _eval(rest: str, program: Program) -> None:
    made: dict[str, str] = {}
    for part in _split(rest):
        name, sign, text = part.partition("=")
        if not sign or not re.fullmatch(r"\s*[\w.]+\s*", name):
            raise Unmapped("an 'eval' that is not an assignment was left out")
        value = parse_condition(text)
        used = {each.path[0] for each in parts(value) if isinstance(each, Field)}
        if used & made.keys():  # a later assignment sees the earlier ones
            program.steps.append({"type": "map", "set": made})
            made = {}
        _reads(value, program)
        made[name.strip()] = to_sql(value)
        program.made.add(name.strip())
    program.steps.append({"type": "map", "set": made})


def _rename(rest: str, program: Program) -> None:
    fields = {}
    for part in _split(rest):
        found = re.fullmatch(r"\s*([\w.]+)\s+AS\s+(\w+)\s*", part, re.IGNORECASE)
        if found is None:
            raise Unmapped("a 'rename' without AS was left out")
        fields[found[1]] = found[2]
        _read(found[1], "STRING", program)
        program.made.add(found[2])
    program.steps.append({"type": "rename", "fields": fields})


def _fields(rest: str, program: Program) -> None:
    removes = rest.startswith("-")
    names = [name.strip() for name in rest.lstrip("+- ").split(",") if name.strip()]
    if any("*" in name for name in names):
        raise Unmapped("names with '*' were left out", "name the columns")
    for name in names:
        _read(name, "STRING", program)
    if removes:
        program.steps.append({"type": "drop_fields", "fields": names})
        return
    program.projects = True
    chosen = {name.rsplit(".", 1)[-1]: ".".join(map(quoted, name.split("."))) for name in names}
    program.steps.append({"type": "map", "set": chosen, "keep": False})


def _partition(rest: str, program: Program) -> None:
    names = [name.strip() for name in rest.split(",")]
    for name in names:
        _read(name, "STRING", program)
    texts = ", ".join(f"CAST({quoted(name)} AS STRING)" for name in names)
    key = f"concat_ws('|', {texts})" if len(names) > 1 else texts
    program.steps.append({"type": "map", "set": {"_key": key}})


def _output(rest: str, program: Program) -> None:
    name, _, kind = rest.partition(" ")
    if kind and not re.fullmatch(r"type\s*=\s*string", kind.strip()):
        raise Unmapped("an 'output' of this type was left out", "use an encode step")
    _read(name, "STRING", program)
    program.projects = True
    program.steps.append({"type": "map", "set": {"value": f"CAST({quoted(name)} AS STRING)"}, "keep": False})


def _parse_csv(rest: str, program: Program) -> None:
    found = re.fullmatch(r'(\w+)\s+header\s*=\s*"([^"]+)"', rest)
    if found is None:
        raise Unmapped("'parse_csv' without a header was left out", "use a decode step with a schema")
    names = [name.strip() for name in found[2].split(",")]
    _read(found[1], "STRING", program)
    program.made |= set(names)
    schema = ", ".join(f"{quoted(name)} STRING" for name in names)
    program.steps.append({"type": "decode", "format": "csv", "field": found[1], "schema": schema})


def _parse_any(rest: str, program: Program) -> None:
    raise Unmapped("the columns are unknown", "use a decode step with a schema")


STAGES = {
    "eval": _eval, "rename": _rename, "fields": _fields, "partition_by": _partition, "output": _output,
    "parse_csv": _parse_csv, "parse_json": _parse_any, "parse_kv": _parse_any, "parse_regex": _parse_any,
    "parse_xml": _parse_any,
}  # fmt: skip


def _window(stage: str, program: Program) -> None:
    """`sum(amount) AS revenue timespan=1h group_by tenant where ok = true`."""
    where = re.search(r"\bwhere\b(.*)$", stage, re.IGNORECASE | re.DOTALL)
    if where is not None:
        condition = parse_condition(where[1])
        stage = stage[: where.start()]
    group = re.search(r"\bgroup_by\s+([\w.]+(?:\s*,\s*[\w.]+)*)", stage, re.IGNORECASE)
    keys = [name.strip() for name in group[1].split(",")] if group is not None else []
    stage = stage[: group.start()] + stage[group.end() :] if group is not None else stage
    span = SPAN.search(stage)
    assert span is not None
    rest = stage[: span.start()] + stage[span.end() :]
    options = dict(re.findall(r"\b(window|window_type|type|mode|slide|every|gap)\s*=\s*\"?(\w+)\"?", rest))
    rest = re.sub(r"\b\w+\s*=\s*\"?\w+\"?", "", rest)
    aggregates = {}
    for part in _split(rest):
        found = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([\w.]*)\s*\))?\s*(?:AS\s+(\w+))?\s*", part, re.IGNORECASE)
        if found is None or found[1].lower() not in AGGREGATES:
            raise Unmapped(f"the aggregate '{part.strip()}' has no equivalent", "use a window step")
        function, column = found[1].lower(), found[2]
        if not column and function != "count":
            raise Unmapped(f"the aggregate '{part.strip()}' names no column", "use a window step")
        if column:
            _read(
                column,
                "DOUBLE" if function in ("sum", "avg", "mean", "stddev", "median") else "STRING",
                program,
            )
        name = found[3] or (f"{function}_{snake_of(column)}" if column else function)
        aggregates[name] = AGGREGATES[function].format(column or "*")
    kind = (
        options.get("window")
        or options.get("window_type")
        or options.get("type")
        or options.get("mode")
        or "tumbling"
    )
    if kind not in KINDS:
        raise Unmapped(f"windows of the kind '{kind}' have no equivalent", f"one of: {', '.join(KINDS)}")
    size = span[1] + span[2].lower()
    step: dict[str, Any] = {"type": "window", "kind": kind}
    if kind == "session":
        step["gap"] = options.get("gap", size)
    else:
        step["size"] = size
        if kind in ("sliding", "hopping"):
            step["slide"] = options.get("slide") or options.get("every") or size
    for key in keys:
        _read(key, "STRING", program)
    if where is not None:
        _reads(condition, program)
        program.steps.append({"type": "filter", "where": to_sql(condition)})
    program.steps.append(
        {**step, "keys": keys, "aggregates": aggregates} if keys else {**step, "aggregates": aggregates}
    )
    program.made |= set(aggregates)
    program.projects = True


def snake_of(name: str) -> str:
    """The name of a column as part of another name."""
    return name.replace(".", "_")


def _reads(expression: Expression, program: Program) -> None:
    """Record the columns of an expression, with the types that their operators imply."""
    kinds: dict[str, str] = {}
    for part in parts(expression):
        if isinstance(part, Binary):
            names = [".".join(side.path) for side in (part.left, part.right) if isinstance(side, Field)]
            if (kind := _kind_of(part)) is not None:
                kinds |= dict.fromkeys(names, kind)
    for part in parts(expression):
        if isinstance(part, Field):
            name = ".".join(part.path)
            _read(name, kinds.get(name, "STRING"), program)


def _kind_of(part: Binary) -> str | None:
    """The type that an operator implies for its columns."""
    given = part.right.items if isinstance(part.right, Items) else (part.left, part.right)
    values = [side.value for side in given if isinstance(side, Literal)]
    if part.operator == "has":
        return "ARRAY<STRING>"
    if any(isinstance(value, bool) for value in values):
        return "BOOLEAN"
    if any(isinstance(value, str) for value in values):
        return None
    return "DOUBLE" if values or part.operator in ("-", "*", "/", "%", "+") else None


def _read(name: str, kind: str, program: Program) -> None:
    if name.split(".")[0] in program.made:
        return
    if program.read.get(name, "STRING") == "STRING":
        program.read[name] = kind


def _split(text: str) -> list[str]:
    """The parts of a text, separated by commas outside quotes and brackets."""
    found, depth, start, at = [], 0, 0, 0
    while at < len(text):
        character = text[at]
        if character in "\"'":
            end = re.compile(rf"(?:[^{character}\\]|\\.)*{character}").match(text, at + 1)
            at = end.end() if end else len(text)
            continue
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
        at += 1
    return [part for part in [*found, text[start:]] if part.strip()]


def parse_condition(text: str) -> Expression:
    """A single expression."""
    reader = _Reader(text)
    found = reader.expression()
    if reader.peek()[0] != "end":
        raise Unmapped(f"'{reader.peek()[1]}' is not understood")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise Unmapped(f"'{text[at : at + 10]}' is not understood")
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup or "", match[0]))
            at = match.end()
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "the end")

    def next(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def expression(self, level: int = 1) -> Expression:
        left = self.primary()
        while True:
            kind, text = self.peek()
            word = text.lower() if kind == "name" else WORDS.get(text, text)
            negated = kind == "name" and word == "not"
            own = 4 if negated else LEVELS.get(word, 0)
            if kind not in ("sign", "name") or own < level or own == 0:
                return left
            self.next()
            if negated:
                if self.next()[1].lower() != "in":
                    raise Unmapped("'NOT' is not understood here")
                left = Unary("not", Binary("in", left, self.expression(5)))
                continue
            left = _comparison(word, left, self.expression(own + 1))

    def primary(self) -> Expression:
        kind, text = self.next()
        if kind == "text":
            return Literal(re.sub(r"\\(.)", r"\1", text[1:-1]))
        if kind == "number":
            return Literal(float(text) if "." in text else int(text))
        if text == "(":
            inside = self.expression()
            self._expect(")")
            return inside
        if text == "[":
            return Items(tuple(self._until("]")))
        if text == "-":
            return Unary("-", self.primary())
        if text == "!":
            return Unary("not", self.primary())
        if kind != "name":
            raise Unmapped(f"'{text}' is not understood")
        if text.lower() == "not":
            return Unary("not", self.expression(3))
        if text.lower() in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[text.lower()])
        if self.peek()[1] == "(":
            self.next()
            return Call(text.lower(), tuple(self._until(")")))
        return Field(tuple(text.split(".")))

    def _until(self, end: str) -> list[Expression]:
        items: list[Expression] = []
        while self.peek()[1] != end:
            items.append(self.expression())
            if self.peek()[1] == ",":
                self.next()
            elif self.peek()[1] != end:
                raise Unmapped(f"'{self.peek()[1]}' is not understood")
        self.next()
        return items

    def _expect(self, text: str) -> None:
        if self.next()[1] != text:
            raise Unmapped(f"'{text}' is missing")


def _comparison(word: str, left: Expression, right: Expression) -> Expression:
    if (
        word in ("==", "!=")
        and isinstance(right, Literal)
        and isinstance(right.value, str)
        and "*" in right.value
    ):
        pattern = "^" + ".*".join(re.escape(part) for part in right.value.split("*")) + "$"
        matches = Binary("~", left, Literal(pattern))
        return matches if word == "==" else Unary("not", matches)
    return Binary(word, left, right)
