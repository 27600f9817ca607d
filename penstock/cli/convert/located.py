"""A foreign configuration as a tree that tracks the line, the path and the use of each value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from penstock.errors import Problem
from penstock.specs.text import Unreadable, read_with_nodes

PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")


class Node:
    """A value of the input. Reading it marks it as used."""

    def __init__(self, value: Any, line: int, path: str = "", name: str = "") -> None:
        self.line, self.path, self.name, self.used = line, path, name, False
        self.value = value
        self.children: dict[str, Node] = {}
        self.items: list[Node] = []

    @property
    def is_map(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.value, list)

    def get(self, name: str) -> Node | None:
        """The field of that name, if there is one that is not null."""
        found = self.children.get(name)
        return None if found is None or found.value is None else found

    def at(self, path: str) -> Node | None:
        """The field at a path such as `sasl.user`, or whose name contains the dots."""
        if path in self.children:
            return self.get(path)
        node: Node | None = self
        for name in path.split("."):
            node = None if node is None else node.get(name)
        return node

    def use(self) -> Any:
        """The plain value. Marks the value and everything inside it as used."""
        for leaf in self.leaves():
            leaf.used = True
        return self.value

    def text(self) -> str:
        """The value as text."""
        value = self.use()
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else str(value)

    def peek(self, name: str, default: Any = None) -> Any:
        """The value of a field, without using it."""
        found = self.get(name)
        return default if found is None else found.value

    def leaves(self) -> Iterator[Node]:
        """The values inside it that have no parts, including empty lists and mappings."""
        inside = [*self.children.values(), *self.items]
        if not inside:
            yield self
        for node in inside:
            yield from node.leaves()

    def unused(self) -> list[Node]:
        """The outermost values of which no part was used."""
        leaves = list(self.leaves())
        if all(not leaf.used for leaf in leaves):
            return [self]
        inside = [*self.children.values(), *self.items]
        return [found for node in inside for found in node.unused()]


def read_located(text: str) -> list[Node]:
    """The documents of a text in YAML, JSON or Java properties. `Unreadable` if it is none of them."""
    if (properties := _properties(text)) is not None:
        return [properties]
    return [
        _node(value, node, "") for value, node in read_with_nodes(text) if value is not None and value != ""
    ]


def _node(value: Any, source: yaml.Node | None, path: str) -> Node:
    line = source.start_mark.line + 1 if source is not None else 1
    made = Node(value, line, path)
    if isinstance(value, dict):
        inside = {}
        if isinstance(source, yaml.MappingNode):
            inside = {key.value: (key, child) for key, child in source.value}
        for name, part in value.items():
            key, child = inside.get(name, (None, None))
            step = name if PLAIN_KEY.fullmatch(name) else f'"{name}"'
            found = _node(part, child, f"{path}.{step}" if path else step)
            if key is not None:
                found.line = key.start_mark.line + 1
            found.name = name
            made.children[name] = found
    elif isinstance(value, list):
        sources = source.value if isinstance(source, yaml.SequenceNode) else [None] * len(value)
        for i, part in enumerate(value):
            child = sources[i] if i < len(sources) else None
            made.items.append(_node(part, child, f"{path}[{i}]"))
    return made


def _properties(text: str) -> Node | None:
    """A file of Java properties, if the text is one: `name=value` lines."""
    lines = text.splitlines()
    meant = [line for line in lines if line.strip() and line.strip()[0] not in "#!"]
    if not meant or not re.match(r"\s*[\w.$-]+\s*=", meant[0]):
        return None
    root = Node({}, 1)
    number = 0
    while number < len(lines):
        first, line = number, lines[number]
        number += 1
        while CONTINUED.search(line) and number < len(lines):
            line = line[:-1] + lines[number].lstrip()
            number += 1
        if not line.strip() or line.strip()[0] in "#!":
            continue
        found = re.match(r"\s*([^=:\s]+)\s*[=:\s]\s*(.*)", line)
        if found is None:
            message = f"line {first + 1} is not a property"
            raise Unreadable(Problem(code="unreadable_text", message=message, hint="use name=value"))
        name, value = found[1], found[2].strip()
        step = name if PLAIN_KEY.fullmatch(name) else f'"{name}"'
        root.value[name] = value
        root.children[name] = Node(value, first + 1, step, name)
    return root
