"""The documents of a conversion, and its findings: parts of the input without an exact equivalent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from penstock.cli.convert.located import Node
from penstock.errors import Invalid
from penstock.specs.base import Component
from penstock.specs.catalog import Role
from penstock.specs.documents import API_VERSION, SinkBinding, SinkEntry, SourceBinding

Level = Literal["note", "change"]
"""A `note` is for information; with a `change` the documents behave differently from the input."""

BOUND = frozenset({*SinkEntry.model_fields, *SinkBinding.model_fields, *SourceBinding.model_fields})
"""Fields that a source or sink has in addition to those of its connector."""

SECRET = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api[._-]?key|access[._-]?key|private[._-]?key|credential(?!s_file)",
    re.IGNORECASE,
)
NO_SECRET = re.compile(r"token_url|key_?file|secret_?file|token_?file", re.IGNORECASE)
GENERIC = re.compile(
    r"(in|out)puts?|spec|sources?|sinks?|config|cases|processors|pipeline|sasl|tls|security|(basic_)?auth|headers"
    r"|broker|switch|fallback|database|connection|transforms|client_conf"
)
"""Parts of a path that would be meaningless in the name of a variable."""

VARIABLE = re.compile(r"\$\{[^}]*\}")
LOGIN = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://[^:/@\s]*):(?P<password>[^@/\s]+)@")
DSN_LOGIN = re.compile(r"^(?P<scheme>[\w.-]+):(?P<password>[^@\s]+)@(?=tcp\(|unix\()")


class Unmapped(Exception):
    """A value that has no equivalent. `hint` suggests what the user can do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class Finding:
    """A part of the input that has no exact equivalent."""

    line: int
    path: str
    level: Level
    code: str
    message: str
    """What was done instead."""
    hint: str | None = None
    at: str | None = field(default=None, compare=False)
    """The place in the output, such as `documents[0].spec.sinks[1]`."""
    covers: bool = field(default=True, compare=False)
    """Whether the finding covers everything below its path."""

    def plain(self) -> dict[str, Any]:
        """The finding in the form of `--json`."""
        return {name: value for name, value in asdict(self).items() if name != "covers"}


Convert = Callable[[Node], Any]


@dataclass(frozen=True)
class To:
    """The path of a Penstock field, and the conversion of its value; by default the value is unchanged."""

    path: str
    convert: Convert | None = None


@dataclass(frozen=True)
class Note:
    """A foreign field without effect on events: it is left out, with a note."""

    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Same:
    """A foreign field with one supported value, which is how Penstock always behaves."""

    value: Any
    message: str = "Penstock has no such setting"
    hint: str | None = None
    code: str = "not_mapped"


Entry = str | To | Note | Same
Table = Mapping[str, Entry]


class Draft:
    """Collects the documents and findings of one conversion."""

    def __init__(self, root: Node, schema: str | None = None, first: int = 0) -> None:
        self.root, self.schema, self.first = root, schema, first
        self.documents: list[dict[str, Any]] = []
        self._found: list[tuple[Node, Level, str, str, str | None, Any, bool]] = []
        self._places: list[tuple[Node, Any]] = []
        self._variables: dict[str, str] = {}

    def place(self, node: Node | None, made: Any) -> None:
        """Record the part of the output for a part of the input: findings about the input are shown there."""
        if node is not None:
            self._places.append((node, made))

    def note(self, node: Node, message: str, hint: str | None = None, code: str = "note") -> None:
        """Report something that the user should know; no behavior changes."""
        node.use()
        self._found.append((node, "note", code, message, hint, None, True))

    def change(
        self,
        node: Node,
        message: str,
        hint: str | None = None,
        code: str = "not_mapped",
        *,
        whole: bool = True,
    ) -> None:
        """Report a change of behavior or an omission; `whole`: nothing inside the node is reported again."""
        if whole:
            node.use()
        self._found.append((node, "change", code, message, hint, None, whole))

    def about(self, made: Any, message: str, hint: str | None = None, code: str = "changed") -> None:
        """Report a change that isn't caused by a single field of the input."""
        origin = next((node for node, place in reversed(self._places) if place is made), self.root)
        self._found.append((origin, "change", code, message, hint, made, False))

    def fill(self, made: dict[str, Any], node: Node | None, table: Table) -> None:
        """Fill `made` from the fields of `node` that are in the table. Others are reported as unused."""
        if node is None:
            return
        self.place(node, made)
        if not node.children:
            node.use()
        for name, entry in table.items():
            found = node.at(name)
            if found is not None:
                self._enter(made, found, entry)

    def _enter(self, made: dict[str, Any], found: Node, entry: Entry) -> None:
        if isinstance(entry, Note):
            self.note(found, entry.message, entry.hint, code="left_out")
            return
        if isinstance(entry, Same):
            if str(found.value).lower() == str(entry.value).lower():
                found.use()
            else:
                self.change(found, entry.message, entry.hint, entry.code)
            return
        to = entry if isinstance(entry, To) else To(entry)
        try:
            value = to.convert(found) if to.convert else found.value
        except Unmapped as reason:
            self.change(found, reason.message, reason.hint)
            return
        found.use()
        self.put(made, to.path, self.hidden(found, value))

    def put(self, made: dict[str, Any], path: str, value: Any) -> None:
        """Set a field of the output at a dotted path."""
        *outer, last = path.split(".")
        for name in outer:
            made = made.setdefault(name, {})
        if isinstance(value, dict) and isinstance(made.get(last), dict):
            value = {**made[last], **value}
        made[last] = value

    def hidden(self, node: Node, value: Any) -> Any:
        """The value with each plain-text secret replaced by a variable, with a note."""
        if isinstance(value, dict):
            return {
                name: self._hide(node.children.get(name, node), name, part) for name, part in value.items()
            }
        if isinstance(value, list):
            return [self.hidden(node, part) for part in value]
        return self._hide(node, node.name, value)

    def _hide(self, node: Node, name: str, value: Any) -> Any:
        if isinstance(value, dict | list):
            return self.hidden(node, value)
        if not isinstance(value, str) or not value:
            return value
        for login in (LOGIN, DSN_LOGIN):
            if (found := login.search(value)) and not VARIABLE.fullmatch(found["password"]):
                variable = self._variable(node, "password", whole=False)
                return value[: found.start("password")] + f"${{{variable}}}" + value[found.end("password") :]
        if SECRET.search(name) and not NO_SECRET.search(name) and not VARIABLE.search(value):
            return f"${{{self._variable(node, name)}}}"
        if name.lower() == "authorization" and not VARIABLE.search(value):
            scheme, _, _ = value.rpartition(" ")
            return f"{scheme} ${{{self._variable(node, name)}}}".strip()
        return value

    def _variable(self, node: Node, name: str, *, whole: bool = True) -> str:
        around = [
            step for step in re.findall(r"[A-Za-z][\w-]*", node.path)[:-1] if not GENERIC.fullmatch(step)
        ]
        named = "_".join([*around[-1:], name]) if around else name
        base = re.sub(r"[\W_]+", "_", named).strip("_").upper()
        variable, number = base, 2
        while variable in self._variables and self._variables[variable] != node.path:
            variable, number = f"{base}_{number}", number + 1
        if variable not in self._variables:
            self._variables[variable] = node.path
            hint = f"export {variable} where the flow runs"
            message = f"the plain-text secret was replaced by the variable ${{{variable}}}"
            self._found.append((node, "note", "secret", message, hint, None, whole))
        return variable

    def findings(self) -> list[Finding]:
        """All findings in the order of lines, including those about unused fields."""
        for node in self.root.unused():
            if node.path or not node.value:
                what = "has no equivalent and was left out"
                self._found.append((node, "change", "not_mapped", what, None, None, True))
        made = [
            Finding(node.line, node.path, level, code, message, hint, self._where(node, at), covers)
            for node, level, code, message, hint, at, covers in self._found
        ]
        return sorted(dict.fromkeys(made), key=lambda each: each.line)

    def _where(self, node: Node, made: Any) -> str | None:
        """The place in the output that a finding belongs to."""
        if made is not None:
            return self._path_of(made)
        fitting = [
            (len(around.path), place)
            for around, place in reversed(self._places)
            if _is_in(node.path, around.path)
        ]
        for _, place in sorted(fitting, key=lambda each: -each[0]):
            if (found := self._path_of(place)) is not None:
                return found
        return f"documents[{self.first}]" if self.documents else None

    def _path_of(self, made: Any) -> str | None:
        """The path of a part of the output; documents are counted over all drafts."""
        for i, document in enumerate(self.documents, self.first):
            if (found := _path_of(made, document, f"documents[{i}]")) is not None:
                return found
        return None

    def check(self) -> None:
        """Report connectors that are not installed, and anything else that would not be valid."""
        from penstock.specs.catalog import catalog
        from penstock.specs.validation import parse

        for document in self.documents:
            missing = False
            for role, end in ends_of(document):
                known = catalog(role)
                name = str(end.get("type"))
                if name not in known.classes:
                    missing = True
                    why = f": {known.broken[name]}" if name in known.broken else ""
                    self.about(
                        end,
                        f"this installation has no {role} of type '{name}'{why}",
                        "install it, or use another type",
                        code="not_installed",
                    )
                else:
                    self._drop_unknown(end, known.classes[name])
            if missing:
                continue
            try:
                parse(document)
            except Invalid as error:
                for problem in error.problems:
                    self.about(document, f"not valid yet: {problem}", problem.hint, code="invalid")

    def _drop_unknown(self, end: dict[str, Any], cls: type[Component]) -> None:
        """Leave out fields that the installed connector does not have."""
        known = {info.alias or name for name, info in cls.model_fields.items()} | BOUND
        for name in [name for name in end if name not in known]:
            del end[name]
            self.about(
                end, f"'{end['type']}' has no field '{name}' here: it was left out", code="no_such_field"
            )


def new_document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A document of a kind."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def ends_of(document: Mapping[str, Any]) -> list[tuple[Role, dict[str, Any]]]:
    """The sources and sinks in a document, each with its role."""
    spec, kind = document.get("spec") or {}, document.get("kind")
    found: list[tuple[Role, dict[str, Any]]] = []
    if kind == "Source":
        found.append(("source", spec))
    if kind == "Sink":
        found.append(("sink", spec))
    if kind == "Pipeline":
        if "type" in (spec.get("source") or {}):
            found.append(("source", spec["source"]))
        found += [("sink", sink) for sink in spec.get("sinks", ()) if "type" in sink]
    return found


def _is_in(path: str, around: str) -> bool:
    return not around or path == around or path.startswith((f"{around}.", f"{around}["))


def _path_of(wanted: Any, value: Any, path: str) -> str | None:
    """The path of an object in the output, found by identity."""
    if value is wanted:
        return path
    inside: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        inside = [(f"{path}.{name}", part) for name, part in value.items()]
    elif isinstance(value, list):
        inside = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    for step, part in inside:
        if (found := _path_of(wanted, part, step)) is not None:
            return found
    return None
