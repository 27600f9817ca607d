"""Documents as text: YAML or JSON, one or several in a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError

from penstock.errors import Invalid, PenstockError, Problem

SUFFIXES = (".yaml", ".yml", ".json")

DEEPEST = 100
"""Maximum nesting of a document: far more than documents need, and too little to exhaust the stack."""

MOST_NODES = 1_000_000
"""Maximum number of values in a text with its aliases expanded: a few lines of aliases could be billions."""

_NOT_JSON = ("binary", "omap", "pairs", "set", "timestamp")


class Unreadable(PenstockError):
    """Text that is neither YAML nor JSON."""

    status = 400


class _Loader(Composer, yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML restricted to values that JSON can represent.

    A duplicate key is an error, and dates stay text. Nodes are composed in Python: the composer in C crashes
    the process on deep nesting.
    """

    def __init__(self, stream: str | bytes) -> None:
        super(Composer, self).__init__(stream)
        Composer.__init__(self)
        self._depth = self._nodes = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        alias = self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark
        before, self._depth = self._nodes, self._depth + 1
        if self._depth > DEEPEST:
            raise ConstructorError(None, None, f"more than {DEEPEST} levels deep", mark)
        node = super().compose_node(parent, index)
        if alias and id(node) not in self._sizes:
            raise ConstructorError(None, None, "an alias refers to its own parent", mark)
        self._nodes += self._sizes[id(node)] if alias else 1
        if self._nodes > MOST_NODES:
            raise ConstructorError(None, None, f"more than {MOST_NODES} values", mark)
        self._sizes[id(node)] = self._nodes - before
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            if key_node.tag == f"{_TAG}bool":
                key_node.tag = f"{_TAG}str"  # a field may be named `on`, which is true in YAML 1.1
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                shown = f" {key_node.value}" if isinstance(key_node, yaml.ScalarNode) else ""
                what = f"the key{shown} is not text; put it in quotes"
                raise ConstructorError(None, None, what, key_node.start_mark)
            if key in seen:
                raise ConstructorError(None, None, f"duplicate key '{key}'", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        whole = node.tag.endswith(":int")
        number = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        if not _storable(number):
            raise ConstructorError(None, None, "a number out of range", node.start_mark)
        return number  # type: ignore[no-any-return]


_TAG = "tag:yaml.org,2002:"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag not in {_TAG + name for name in _NOT_JSON}
}
_Loader.add_constructor(f"{_TAG}int", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)


def read_all(text: str | bytes) -> list[Any]:
    """Every document in a text; a bundle or a list is replaced by its documents."""
    documents: list[Any] = []
    for part in _values(text):
        if isinstance(part, dict) and (part.get("kind") == "Bundle" or part.keys() == {"documents"}):
            documents += _in_bundle(part)
        elif isinstance(part, list):
            documents += part
        elif part is not None:
            documents.append(part)
    return documents


def read_one(text: str | bytes) -> Any:
    """The single value in a text, unchanged."""
    values = _values(text)
    if len(values) > 1:
        message = f"expected one document, found {len(values)}"
        raise Unreadable(Problem(code="several_documents", message=message))
    return values[0] if values else None


def read_with_nodes(text: str | bytes) -> list[tuple[Any, yaml.Node]]:
    """Each value in a text of YAML or JSON, with a node that has the lines of its parts."""
    try:
        plain = [_json(text)]
        # JSON strings contain no tabs, and YAML does not accept tabs as white space everywhere.
        text = text.replace(b"\t", b" ") if isinstance(text, bytes) else text.replace("\t", " ")
    except (ValueError, RecursionError):
        plain = []
    loader = _Loader(text)
    found: list[tuple[Any, yaml.Node]] = []
    try:
        while loader.check_node():
            if (node := loader.get_node()) is not None:
                found.append((loader.construct_document(node), node))
    except (yaml.YAMLError, RecursionError, ValueError, LookupError) as error:
        raise Unreadable(_syntax(error)) from None
    finally:
        loader.dispose()
    return [(plain[0], found[0][1])] if plain and len(found) == 1 else found


def read_path(path: Path) -> list[Any]:
    """All documents in a file, or in the files of a directory in the order of their names."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        return [document for file in files for document in read_path(file)]
    try:
        return read_all(path.read_bytes())
    except OSError as error:
        raise Unreadable(
            Problem(code="unreadable_file", message=f"{path}: {error.strerror}", hint="check the path")
        ) from None
    except Unreadable as error:
        error.problems[0].message = f"{path}: {error.problems[0].message}"
        raise


class _Dumper(yaml.SafeDumper):
    """YAML for people: queries and scripts as blocks, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        # PyYAML writes these unescaped in some styles, and reads them as line breaks or not at all.
        if any(not c.isprintable() and c != "\n" for c in text):
            style = '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def to_yaml(value: Any) -> str:
    """A value as YAML, with keys in their original order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def to_json(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _in_bundle(bundle: dict[str, Any]) -> list[Any]:
    from penstock.specs.documents import API_VERSION  # loads every connector, and most texts need none

    problems = [
        Problem(code="unknown_field", message=f"there is no field '{name}' here", path=name)
        for name in bundle.keys() - {"apiVersion", "kind", "documents"}
    ]
    if bundle.get("apiVersion", API_VERSION) != API_VERSION:
        message, hint = f"{bundle['apiVersion']!r} is not valid here", f"use {API_VERSION}"
        problems.append(Problem(code="invalid_choice", message=message, path="apiVersion", hint=hint))
    documents = bundle.get("documents")
    if not isinstance(documents, list):
        message = "a bundle must have a list of documents"
        problems.append(Problem(code="wrong_type", message=message, path="documents"))
    if problems or not isinstance(documents, list):
        raise Invalid(*problems)
    return documents


def _values(text: str | bytes) -> list[Any]:
    try:
        return [_json(text)]
    except (ValueError, RecursionError):
        pass  # it may be YAML; if not, YAML's error has the position
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, RecursionError, ValueError, LookupError) as error:
        raise Unreadable(_syntax(error)) from None


def _json(text: str | bytes) -> Any:
    """Parse JSON: not all JSON is YAML, nor has the same meaning there, and this is far faster."""
    value = json.loads(
        text, object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_float
    )
    json.dumps(value, ensure_ascii=False).encode()  # rejects lone surrogates, which cannot be stored
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError("too deep")
        containers = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [child for children in containers for child in children if isinstance(child, dict | list)]
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _int(text: str) -> int:
    if not _storable(number := int(text)):
        raise ValueError("out of range")
    return number


def _float(text: str) -> float:
    if not _storable(number := float(text)):
        raise ValueError("out of range")
    return number


def _storable(number: int | float) -> bool:
    return number.bit_length() < 64 if isinstance(number, int) else math.isfinite(number)


def _syntax(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return Problem(
        code="not_yaml", message=f"neither YAML nor JSON{where}: {what}", hint="check indentation and quotes"
    )
