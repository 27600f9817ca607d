"""Inspection of Spark's logical plans from Python.

Nodes are py4j objects. Every access costs a round trip to the JVM, so facts about classes are cached and
leaves are not opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CATALYST = "org.apache.spark.sql.catalyst."

LEAVES = frozenset(
    {"Literal", "UnresolvedAttribute", "UnresolvedStar", "AttributeReference", "OuterReference"}
)
"""Nodes without child nodes that matter."""

_shapes: dict[str, str] = {}


def class_name(node: Any) -> str:
    """The full name of a node's JVM class, without the mark of a Scala object."""
    return str(node.getClass().getName()).rstrip("$")


def name(node: Any) -> str:
    """The simple name of a node's class, or the full one where it is not one of Catalyst's."""
    full = class_name(node)
    return full.rpartition(".")[2] if full.startswith(CATALYST) else full


def elements(collection: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def position(node: Any) -> tuple[int, int] | None:
    """Line and column, both from 1, where a node begins in the text it was parsed from."""
    origin = node.origin()
    line, start = origin.line(), origin.startPosition()
    return (line.get(), start.get() + 1) if line.isDefined() and start.isDefined() else None


def parts(jvm: Any, node: Any) -> Iterator[Any]:
    """Every node that a parsed node was built from.

    Its constructor's arguments are searched, not its `children`: some nodes keep expressions where no
    tree walk of Spark's shows them, such as the right-hand sides of `|> SET` and named windows.
    """
    waiting = [node.productElement(i) for i in range(node.productArity())]
    while waiting:
        item = waiting.pop()
        shape = _shape(jvm, item)
        if shape == "node":
            yield item
        elif shape == "collection":
            waiting.extend(elements(item))
        elif shape == "product":
            waiting.extend(item.productElement(i) for i in range(item.productArity()))


def _shape(jvm: Any, item: Any) -> str:
    """How to look for nodes in an argument: it is one, it is a collection or a tuple, or it holds none."""
    if not hasattr(item, "_target_id"):
        return "none"  # py4j has turned it into a Python value
    known = _shapes.get(full := class_name(item))
    if known is None:
        known = _shapes[full] = _judge(jvm, full, item)
    return known


def _judge(jvm: Any, full: str, item: Any) -> str:
    def isa(other: str) -> bool:
        return bool(jvm.java.lang.Class.forName(other).isInstance(item))

    if isa(CATALYST + "trees.TreeNode"):
        return "node"
    if isa("scala.collection.Iterable"):
        return "collection"
    if full.startswith("org.apache.spark.sql.types."):
        return "none"  # types are products too, and deep ones; they hold no expression
    return "product" if isa("scala.Product") else "none"
