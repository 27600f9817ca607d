"""The state that Spark keeps of a stream between batches, derived from the plan.

Spark refuses to resume with state whose types have changed, or, if it stores bytes, misreads it. These types
are only visible in the optimized plan: unused columns are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.spark import plans
from penstock.spark.catalyst import optimised
from penstock.sql.analysed import aggregate_calls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYED = frozenset({"Deduplicate", "DeduplicateWithinWatermark"})


def remembered(df: DataFrame) -> list[str]:
    """A line for each input of a streaming frame, and one with the state types of each stateful operator."""
    return list(_lines(optimised(df)))


def _lines(node: Any) -> Iterator[str]:
    name = plans.name(node).rpartition(".")[2]
    children = [child for child in plans.elements(node.children()) if child.isStreaming()]
    if not children:
        yield "input"
    elif name == "Aggregate":
        kept = [*_types(node.groupingExpressions()), *_buffers(node)]
        yield f"{name} {', '.join(kept)}"
    elif name in KEYED:
        yield f"{name} {', '.join(_types(node.keys()))}"
    elif name == "Join" and len(children) > 1:
        sides = [", ".join(_types(child.output())) for child in children]
        yield f"{name} {plans.name(node.joinType())} {' | '.join(sides)}"
    elif name == "TransformWithState":
        yield f"{name} {', '.join(_types(node.groupingAttributes()))}"
    for child in children:
        yield from _lines(child)


def _types(expressions: Any) -> list[str]:
    return [
        each.dataType().catalogString() + ("" if each.nullable() else " NOT NULL")
        for each in plans.elements(expressions)
    ]


def _buffers(aggregate: Any) -> Iterator[str]:
    for call in aggregate_calls(aggregate):
        function = call.aggregateFunction()
        # The result type as well: some functions store their state as bytes.
        yield (
            f"{function.prettyName()} {function.aggBufferSchema().catalogString()}"
            f" {function.dataType().catalogString()}"
        )
