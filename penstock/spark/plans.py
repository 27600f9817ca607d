"""Inspection of Spark's logical plans from Python.

Nodes of the JVM are py4j objects, and every access costs a round trip to the JVM. Code that inspects many
nodes reads the whole tree in one call (`Catalyst.parsed`, `Catalyst.tree`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CATALYST = "org.apache.spark.sql.catalyst."

LEAVES = frozenset(
    {"Literal", "UnresolvedAttribute", "UnresolvedStar", "AttributeReference", "OuterReference"}
)
"""Nodes without relevant child nodes."""


def class_name(node: Any) -> str:
    """The full name of a node's JVM class, without the suffix of a Scala object."""
    return str(node.getClass().getName()).rstrip("$")


def name(node: Any) -> str:
    """The simple name of a node's class, or the full name if it is not a class of Catalyst."""
    return _simple(class_name(node))


def _simple(full: str) -> str:
    return full.rpartition(".")[2] if full.startswith(CATALYST) else full


def elements(collection: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def position(node: Any) -> tuple[int, int] | None:
    """The line and column, both from 1, at which a node begins in its source text."""
    origin = node.origin()
    line, start = origin.line(), origin.startPosition()
    return (line.get(), start.get() + 1) if line.isDefined() and start.isDefined() else None


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a tree that was read from the JVM: inspecting it takes no further calls."""

    name: str
    """The name as returned by the function `name`."""
    at: tuple[int, int] | None
    """The line and column, both from 1, at which the node begins in its source text."""
    fields: Mapping[str, Any]
    """The fields by name: nodes, texts, flags, and lists and mappings of these."""

    @property
    def children(self) -> list[Node]:
        """The child nodes of a resolved node, except the inside of a view."""
        found: list[Node] = self.fields.get("children", [])
        return found

    @property
    def expressions(self) -> list[Node]:
        """The expressions of a resolved plan's root."""
        found: list[Node] = self.fields.get("expressions", [])
        return found

    @property
    def type(self) -> str | None:
        """The name of a resolved expression's type, without its precision."""
        found: str | None = self.fields.get("type")
        return found and found.partition("(")[0]

    def parts(self) -> Iterator[Node]:
        """Every node that a parsed node was built from."""
        waiting = list(self.fields.values())
        while waiting:
            item = waiting.pop()
            if isinstance(item, Node):
                yield item
            elif isinstance(item, list):
                waiting.extend(item)
            elif isinstance(item, Mapping):
                waiting.extend(item.values())


def nodes(text: str) -> list[Node]:
    """The nodes of a tree that `Trees.java` has described, roots first."""
    described = json.loads(text)
    made = [
        Node(
            _simple(each["class"]), (each["line"], each["column"]) if "line" in each else None, each["fields"]
        )
        for each in described
    ]
    for node in made:
        fields: Any = node.fields
        for name, value in fields.items():
            fields[name] = _linked(value, made)
    return made


def _linked(value: Any, made: list[Node]) -> Any:
    """A field with the nodes that it refers to."""
    if isinstance(value, list):
        return [_linked(item, made) for item in value]
    if isinstance(value, dict):
        index = value.get("node")
        if isinstance(index, int):
            return made[index]
        return {name: _linked(item, made) for name, item in value.items()}
    return value
