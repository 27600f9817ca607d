"""Row by row plans that carry along what the user's SQL does not see, and survive events that it fails on.

A step is planned on the visible columns alone. Then the plan that Spark has resolved is built again with
more in it: the hidden column of every event goes through each node, and what a projection or a condition
computes stands inside Catalyst's `TryEval`, so that an event it raises on is marked instead of failing the
batch. Working on the resolved plan, not on the text, keeps every meaning of the query as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.sql import plans
from penstock.sql.names import quote
from penstock.sql.rows import to_json

MARK = "$input"
"""The alias under which a step's input is found again in the plan."""

TRIED = "$tried"
FAILED = "$failed"
"""The column that tells which events a step has failed on, and what it was given."""

HARMLESS = frozenset({"AttributeReference", "Literal"})
"""What cannot raise."""

TRANSPARENT = frozenset({"SubqueryAlias", "View", "ResolvedHint", "PipeOperator"})
"""Nodes of one child that only name it: every reference to it is resolved by now."""


@dataclass(frozen=True)
class _Built:
    """A part of the plan, built again."""

    plan: Any
    hidden: Any
    """The attribute of the hidden column; None in a part that does not read the input."""
    given: tuple[Any, ...] = ()
    """What the part was given, as far as it is still there: to tell of an event that fails above."""
    failed: Any = None
    """The attribute that says whether an event has failed by now; None where none can have."""


def carry(df: DataFrame, hidden: str, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """What a step over the visible columns of `df` makes, with the column `hidden` carried along.

    If the step can raise, a column `$failed` comes last: for an event it raised on, what the step was given,
    as JSON, while the visible columns mean nothing; else null.
    """
    shown = df.select(*(f.col(quote(name)) for name in df.columns if name != hidden)).alias(MARK)
    result: Any = step(shown)
    builder = _Builder(df.sparkSession, hidden)
    plan = result._jdf.queryExecution().analyzed()
    own = list(plans.elements(plan.output()))
    built = builder.build(builder.inlined(plan))
    frame = DataFrame(builder.dataset(builder.passing(own, built, built.plan)), df.sparkSession)
    columns = [builder.column(a).alias(name) for a, name in zip(own, result.columns, strict=True)]
    columns.append((builder.column(built.hidden) if built.hidden else f.lit(None)).alias(hidden))
    if built.failed:
        given = to_json(*(builder.column(a) for a in built.given))
        columns.append(f.when(builder.column(built.failed), given).alias(FAILED))
    return frame.select(*columns)


class _Builder:
    """Builds a resolved plan again. Catalyst's classes are called by their own names."""

    def __init__(self, session: Any, hidden: str) -> None:
        self.session, self.jvm, self.name = session, session._jvm, hidden
        self.logical = self.jvm.org.apache.spark.sql.catalyst.plans.logical
        self.expressions = self.jvm.org.apache.spark.sql.catalyst.expressions
        self.utils = self.jvm.org.apache.spark.sql.classic.ExpressionUtils

    def inlined(self, plan: Any) -> Any:
        """The plan without common table expressions: each use has its own copy."""
        if plans.name(plan) == "WithCTE" or plan.containsPattern(self._pattern("CTE")):
            return self.jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False, False).apply(plan)
        return plan

    def build(self, node: Any) -> _Built:
        name = plans.name(node)
        if name == "SubqueryAlias" and node.alias() == MARK:
            return self.input(node)
        if name in TRANSPARENT:
            return self.build(next(plans.elements(node.children())))
        if name == "Project":
            return self.projection(node)
        if name == "Filter":
            return self.condition(node)
        return self.other(node, name)

    def input(self, node: Any) -> _Built:
        shown = node.child()
        below = shown.child()
        hidden = next(a for a in plans.elements(below.output()) if a.name() == self.name)
        shown = self.project([*plans.elements(shown.projectList()), hidden], below)
        return _Built(shown, hidden, tuple(plans.elements(node.output())))

    def projection(self, node: Any) -> _Built:
        below = self.build(node.child())
        wanted = list(plans.elements(node.projectList()))
        if below.hidden is None:
            return replace(below, plan=self.project(wanted, below.plan))
        risky = [i for i, e in enumerate(wanted) if not _harmless(e)]
        if not risky:
            return replace(below, plan=self.passing(wanted, below, below.plan))
        plan, tried = self.tried([wanted[i].child() for i in risky], below)
        taken = list(wanted)
        for ordinal, i in enumerate(risky):
            taken[i] = self.field(tried, ordinal, wanted[i])
        failed = self.failed(below, tried)
        made = self.passing([*taken, failed], replace(below, failed=None), plan)
        return replace(below, plan=made, failed=failed.toAttribute())

    def condition(self, node: Any) -> _Built:
        below = self.build(node.child())
        if below.hidden is None:
            return replace(below, plan=self.logical.Filter(node.condition(), below.plan))
        plan, tried = self.tried([node.condition()], below)
        failed = self.failed(below, tried)
        before = _id(below.failed) if below.failed else None
        output = [a for a in plans.elements(below.plan.output()) if _id(a) != before]
        plan = self.project([*output, tried, failed], plan)
        true = self.expressions.GetStructField(tried, 0, self.jvm.scala.Option.empty())
        kept = self.logical.Filter(self.expressions.Or(failed.toAttribute(), true), plan)
        return replace(below, plan=kept, failed=failed.toAttribute())

    def other(self, node: Any, name: str) -> _Built:
        """A node that makes or joins rows: it carries the hidden column, and is not tried."""
        children = [self.carried(child) for child in plans.elements(node.children())]
        reading = [child for child in children if child.hidden is not None]
        if not reading:
            return _Built(node, None)
        if name == "Union":
            return self.union(children)
        if name == "Expand":
            return self.expand(node, children[0])
        plan = node.withNewChildren(self.seq([child.plan for child in children]))
        used: set[int] = set()
        if name == "Generate":  # an array is not repeated for each of its elements
            used = {_id(a) for a in plans.elements(node.generator().references().toSeq())}
        given = tuple(a for a in plans.elements(node.output()) if _id(a) not in used)
        return _Built(plan, reading[0].hidden, given)

    def carried(self, node: Any) -> _Built:
        """A part of the plan below a node that rows with a mark could not pass: nothing in it is tried."""
        name = plans.name(node)
        if name == "SubqueryAlias" and node.alias() == MARK:
            return self.input(node)
        if name in TRANSPARENT:
            return self.carried(next(plans.elements(node.children())))
        if name in ("Project", "Filter"):
            below = self.carried(node.child())
            if name == "Filter":
                return replace(below, plan=self.logical.Filter(node.condition(), below.plan))
            wanted = list(plans.elements(node.projectList()))
            return replace(below, plan=self.project([*wanted, *filter(None, [below.hidden])], below.plan))
        return self.other(node, name)

    def union(self, children: list[_Built]) -> _Built:
        kind = next(child.hidden.dataType() for child in children if child.hidden is not None)
        sides = []
        for child in children:
            output = list(plans.elements(child.plan.output()))
            if child.hidden is not None:
                hidden = child.hidden
                output = [a for a in output if _id(a) != _id(hidden)]
            else:
                hidden = self.alias(self.unknown(kind), self.name)
            sides.append(self.project([*output, hidden], child.plan))
        plan = self.logical.Union(self.seq(sides), False, False)
        output = list(plans.elements(plan.output()))
        return _Built(plan, output[-1], tuple(output[:-1]))

    def expand(self, node: Any, below: _Built) -> _Built:
        rows = [self.seq([*plans.elements(row), below.hidden]) for row in plans.elements(node.projections())]
        output = list(plans.elements(node.output()))
        plan = self.logical.Expand(self.seq(rows), self.seq([*output, below.hidden]), below.plan)
        return _Built(plan, below.hidden, tuple(output))

    def tried(self, computed: list[Any], below: _Built) -> tuple[Any, Any]:
        """The plan below with one more column: all of `computed`, or null if any of it raises."""
        named: list[Any] = []
        for i, expression in enumerate(computed):
            named += [self.literal(str(i)), expression]
        struct = self.expressions.CreateNamedStruct(self.seq(named))
        made = self.alias(self.expressions.TryEval(struct), TRIED)
        return self.project([*plans.elements(below.plan.output()), made], below.plan), made.toAttribute()

    def failed(self, below: _Built, tried: Any) -> Any:
        """Whether an event has failed by now, as a column."""
        here = self.expressions.IsNull(tried)
        if below.failed is not None:
            here = self.expressions.Or(below.failed, here)
        return self.alias(here, FAILED)

    def field(self, tried: Any, ordinal: int, named: Any) -> Any:
        """A tried value under the name and the id that the nodes above know."""
        value = self.expressions.GetStructField(tried, ordinal, self.jvm.scala.Option.empty())
        return self.expressions.Alias(
            value, named.name(), named.exprId(), named.qualifier(),
            self.jvm.scala.Option.apply(named.metadata()), self.seq([]),
        )  # fmt: skip

    def alias(self, expression: Any, name: str) -> Any:
        fresh = self.expressions.NamedExpression.newExprId()
        return self.expressions.Alias(
            expression, name, fresh, self.seq([]), self.jvm.scala.Option.empty(), self.seq([])
        )

    def unknown(self, kind: Any) -> Any:
        """The hidden column of a row that does not come from the input: a struct whose fields are NULL."""
        if kind.typeName() != "struct":
            return self.expressions.Literal(None, kind)
        named: list[Any] = []
        for field in kind.fields():
            named += [self.literal(field.name()), self.expressions.Literal(None, field.dataType())]
        return self.expressions.CreateNamedStruct(self.seq(named))

    def literal(self, value: str) -> Any:
        return getattr(getattr(self.expressions, "Literal$"), "MODULE$").apply(value)

    def project(self, wanted: list[Any], below: Any) -> Any:
        return self.logical.Project(self.seq(wanted), below)

    def column(self, attribute: Any) -> Column:
        return Column(self.utils.column(attribute))

    def dataset(self, plan: Any) -> Any:
        return self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.session._jsparkSession, plan)

    def seq(self, items: list[Any]) -> Any:
        return self.jvm.PythonUtils.toSeq(items)

    def passing(self, wanted: list[Any], below: _Built, plan: Any) -> Any:
        """A projection that lets what is carried pass."""
        known = {_id(a) for a in wanted}
        carried = {_id(a): a for a in (below.hidden, below.failed, *below.given) if a is not None}
        return self.project([*wanted, *(a for id, a in carried.items() if id not in known)], plan)

    def _pattern(self, name: str) -> Any:
        return getattr(self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern, name)()


def _harmless(expression: Any) -> bool:
    name = plans.name(expression)
    return name in HARMLESS or (name == "Alias" and plans.name(expression.child()) in HARMLESS)


def _id(named: Any) -> int:
    return int(named.exprId().id())
