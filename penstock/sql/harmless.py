"""Classification of expressions in a resolved query that can fail on an event, or can't be caught."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from penstock.errors import Invalid, Problem
from penstock.spark import plans
from penstock.spark.catalyst import Catalyst, id_of

SAFE = frozenset(
    {
        "Alias", "And", "AttributeReference", "CaseWhen", "Coalesce", "CreateNamedStruct", "EqualNullSafe",
        "EqualTo", "GetStructField", "GreaterThan", "GreaterThanOrEqual", "If", "In", "IsNotNull", "IsNull",
        "LessThan", "LessThanOrEqual", "Literal", "Lower", "Not", "Or", "OuterReference", "StringSplit",
        "StringTrim", "StringTrimLeft", "StringTrimRight", "Upper",
    }
)  # fmt: skip
"""Expressions that never fail, if their operands do not."""

PLAIN = (SAFE - {"StringSplit"}) | {
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Contains", "DateAdd", "DateSub", "DayOfMonth",
    "DayOfWeek", "DayOfYear", "EndsWith", "Hour", "IsNaN", "Length", "Minute", "Month", "Quarter",
    "Second", "StartsWith", "Substring", "WeekDay", "WeekOfYear", "Year",
}  # fmt: skip
"""Expressions that never fail on values of an event's columns, if their operands do not. `split` may have an
invalid pattern."""

FLOATING = frozenset({"Abs", "Add", "Greatest", "Least", "Multiply", "Round", "Subtract", "UnaryMinus"})
"""Expressions that never fail on values of type FLOAT or DOUBLE, but may fail on other types."""

FLOATS = frozenset({"float", "double"})
NUMBERS = FLOATS | {"byte", "short", "integer", "long", "decimal"}

GUARDS = frozenset({"CaseWhen", "Coalesce", "If"})
"""Expressions that determine whether their operands are evaluated."""

HINT = "use two sql steps: compute the expressions in the first one"
JOIN_HINT = "compare plain columns in ON, and compute in WHERE or in SELECT, or in an sql step before"


class Judge:
    """Classifies the expressions of a resolved query over events."""

    def __init__(self, spark: Catalyst) -> None:
        self.spark = spark

    def safe(self, expression: Any) -> bool:
        """Whether an expression fails on no event, as far as is known."""
        return _safe(self.spark.tree(expression))

    def risky(self, expressions: Any) -> list[int]:
        """The indexes of expressions, in a Scala sequence or a list, that may fail on an event."""
        return [i for i, each in enumerate(self.spark.trees(expressions)) if not _plain(each)]

    def plain(self, expression: Any) -> bool:
        """Whether an expression certainly fails on no event, so that it need not be wrapped."""
        return _plain(self.spark.tree(expression))

    def require(self, node: Any, inside: Sequence[Any], failed: Any | None) -> None:
        """Reject a node that marked events cannot pass, if there may be any, or that may fail itself."""
        own, *others = self.spark.trees([node, *inside])
        trees = [own, *(part for tree in others for part in _nodes(tree))]
        if failed is None and all(_safe(expression) for tree in trees for expression in tree.expressions):
            return
        raise _untried(node, plans.name(node.generator() if plans.name(node) == "Generate" else node), HINT)

    def require_condition(self, node: Any, condition: Any) -> None:
        """Reject a join condition that may fail on a pair of rows."""
        if not self.safe(condition):
            raise _untried(node, "the condition of this join", JOIN_HINT)

    def parts(self, condition: Any, own: Collection[int]) -> list[Any]:
        """The largest parts of a condition that may fail and use only columns of one side."""
        found: list[Any] = []
        self.spark.replaced(condition, lambda each: self._part(each, own, found))
        return found

    def with_parts(self, condition: Any, own: Collection[int], values: Sequence[Any]) -> Any:
        """A condition with its parts replaced by these values."""
        waiting = iter(values)

        def replace(expression: Any) -> Any | None:
            found: list[Any] = []
            kept = self._part(expression, own, found)
            return next(waiting) if found else kept

        return self.spark.replaced(condition, replace)

    def _part(self, expression: Any, own: Collection[int], found: list[Any]) -> Any | None:
        """The expression itself if nothing in it has to be replaced; else None."""
        if self.safe(expression):
            return expression
        used = [id_of(a) for a in plans.elements(expression.references().toSeq())]
        if used and all(attribute_id in own for attribute_id in used):
            found.append(expression)
            return expression
        # Operands of a guard must not be computed for every event.
        return expression if plans.name(expression) in GUARDS else None

    def flattened(self, lateral: Any) -> Any | None:
        """A lateral join with a generator or with computed columns as an equivalent plan without the join."""
        spark, left, plan = self.spark, lateral.left(), lateral.right().plan()
        outer = plans.name(lateral.joinType()) == "LeftOuter"
        if lateral.condition().isDefined() or not (outer or plans.name(lateral.joinType()) == "Inner"):
            return None
        projections = []
        while (name := plans.name(plan)) in ("Project", "SubqueryAlias"):
            projections += [plan] if name == "Project" else []
            plan = plan.child()
        made = left
        if name == "Generate" and plans.name(plan.child()) == "OneRowRelation":
            generator = self._inner(plan.generator())
            outer = bool(outer or plan.outer())
            made = spark.generate(generator, plan.generatorOutput(), left, outer=outer)
        elif name != "OneRowRelation":
            return None
        for projection in reversed(projections):
            wanted = [self._inner(e) for e in plans.elements(projection.projectList())]
            made = spark.project([*plans.elements(left.output()), *wanted], made)
        return made

    def _inner(self, expression: Any) -> Any:
        """An expression without the markers of references to the outer row."""
        return self.spark.replaced(expression, lambda e: e.e() if plans.name(e) == "OuterReference" else None)


def _safe(expression: plans.Node) -> bool:
    known = expression.name in SAFE or (expression.name == "Cast" and expression.fields["wider"])
    return known and all(map(_safe, expression.children))


def _plain(expression: plans.Node) -> bool:
    name = expression.name
    if name not in PLAIN and not (
        (name in FLOATING and expression.type in FLOATS) or (name == "Cast" and _widens(expression))
    ):
        return False
    return name in plans.LEAVES or all(map(_plain, expression.children))


def _widens(cast: plans.Node) -> bool:
    """Whether a cast succeeds for every value: a widening cast of a number, or of a time to its date."""
    before, after = cast.children[0].type, cast.type
    if before not in NUMBERS:
        return (before, after) in (("timestamp", "date"), ("boolean", "string"))
    return after in FLOATS or after == "string" or (after in NUMBERS and bool(cast.fields["wider"]))


def _nodes(plan: plans.Node) -> Iterator[plans.Node]:
    yield plan
    for child in plan.children:
        yield from _nodes(child)


def _untried(node: Any, what: str, hint: str) -> Invalid:
    place = plans.position(node)
    at = f" (line {place[0]}, column {place[1]})" if place else ""
    message = (
        f"{what} has an expression that may fail on an event, and such a failure can't be caught there{at}"
    )
    return Invalid(Problem(code="sql_untried", message=message, path="query", hint=hint))
