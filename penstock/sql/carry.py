"""Row-by-row plans that carry the hidden column through user SQL, and survive events on which the SQL fails.

A step is planned on the visible columns only. Then the plan that Spark has resolved is rebuilt: the hidden
column of every event goes through each node, and expressions that may fail are wrapped in Catalyst's
`TryEval`, so that an event on which one fails is marked instead of failing the batch. A marked event passes
the nodes above once, whatever they do to other events, such as joins and generators. Working on the resolved
plan, not on the text, preserves the meaning of the query. A query with expressions that cannot be wrapped in
place is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.spark import plans
from penstock.spark.catalyst import Catalyst, id_of, resolved
from penstock.spark.spool import silent
from penstock.sql.harmless import Judge
from penstock.sql.names import quote
from penstock.sql.rows import EXACT

MARK = "$input"
"""The alias by which a step's input is found in the plan."""

TRIED, MATCHED, ROW = "$tried", "$matched", "$row"
FAILED = "$failed"
"""The column with the input of a step for events on which the step has failed."""

TRANSPARENT = frozenset({"SubqueryAlias", "View", "ResolvedHint", "PipeOperator"})
"""Nodes with one child that only name it: all references to it are already resolved."""

EXPLODING = frozenset({"Explode", "PosExplode", "Inline"})
"""Generators that produce a row for each element of a collection."""


@dataclass(frozen=True)
class _Built:
    """A rebuilt part of the plan."""

    plan: Any
    hidden: Any
    """The attribute of the hidden column; None in a part that does not read the input."""
    given: Any = None
    """The input columns of the part that are still available, to report an event that fails above. A Scala
    sequence."""
    failed: Any = None
    """The attribute with the input of a failed event, NULL for others; None if no event can have failed."""


def carry(df: DataFrame, hidden: str, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """The output of a step over the visible columns of `df`, with the column `hidden` carried along.

    If the step can fail, the last column is `$failed`: for an event on which it failed, the input of the
    step, as JSON, while the visible columns are meaningless; else null.
    """
    shown = df.select(*(f.col(quote(name)) for name in df.columns if name != hidden)).alias(MARK)
    result = step(shown)
    spark = Catalyst(df.sparkSession)
    plan = resolved(result)
    built = _Builder(spark, hidden).build(spark.inlined(plan))
    columns = spark.output(plan).appended(built.hidden or spark.alias(spark.literal(None), hidden))
    if built.failed:
        columns = columns.appended(built.failed)
    return spark.frame(spark.project(columns, built.plan))


class _Builder:
    """Rebuilds a resolved plan."""

    def __init__(self, spark: Catalyst, hidden: str) -> None:
        self.spark, self.name, self.judge = spark, hidden, Judge(spark)
        self.read = False
        """Whether the plan has read the input."""
        self.makers: dict[str, Callable[[Any, list[_Built]], _Built]] = {
            "Union": self.union,
            "Expand": self.expand,
            "Generate": self.generate,
            "Join": self.join,
        }

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
        if name == "LateralJoin" and (flat := self.judge.flattened(node)) is not None:
            return self.build(flat)
        return self.other(node, name)

    def input(self, node: Any) -> _Built:
        shown = node.child()
        below = shown.child()
        if self.read:  # reports of earlier steps must be written once
            below = silent(self.spark.session, below)
        self.read = True
        hidden = self.spark.output_named(below, self.name)
        shown = self.spark.project(shown.projectList().appended(hidden), below)
        return _Built(shown, hidden, node.output())

    def projection(self, node: Any) -> _Built:
        below = self.build(node.child())
        wanted = node.projectList()
        if below.hidden is None:
            return replace(below, plan=self.spark.project(wanted, below.plan))
        if risky := self.judge.risky(wanted):
            tried = [wanted.apply(i) for i in risky]
            below, values = self.attempt([named.child() for named in tried], below)
            for i, named, value in zip(risky, tried, values, strict=True):
                wanted = wanted.updated(i, self.spark.alias_like(value, named))
        return replace(below, plan=self.passing(wanted, below))

    def condition(self, node: Any) -> _Built:
        below = self.build(node.child())
        if below.hidden is None:
            return replace(below, plan=self.spark.filter(node.condition(), below.plan))
        condition = node.condition()
        if not self.judge.plain(condition):
            below, (condition,) = self.attempt([condition], below)
        return replace(below, plan=self.spark.filter(self.or_failed(below, condition), below.plan))

    def other(self, node: Any, name: str) -> _Built:
        """A node that creates, joins or moves rows."""
        children = [self.build(child) for child in plans.elements(node.children())]
        reading = [child for child in children if child.hidden is not None]
        if not reading:
            return _Built(node, None)
        if name in self.makers:
            return self.makers[name](node, children)
        if name == "LateralJoin":
            self.judge.require(node, [node.right().plan()], reading[0].failed)
        else:
            self.judge.require(node, [], None)
        plan = node.withNewChildren(self.spark.seq([child.plan for child in children]))
        return replace(reading[0], plan=plan, given=node.output())

    def union(self, node: Any, children: list[_Built]) -> _Built:
        spark = self.spark
        kind = next(child.hidden.dataType() for child in children if child.hidden is not None)
        fails = any(child.failed is not None for child in children)
        sides = []
        for original, child in zip(plans.elements(node.children()), children, strict=True):
            hidden = child.hidden or spark.alias(self.unknown(kind), self.name)
            told = [child.failed or spark.alias(spark.no_text(), FAILED)] if fails else []
            sides.append(spark.project([*plans.elements(original.output()), hidden, *told], child.plan))
        plan = spark.union(sides)
        output = list(plans.elements(plan.output()))
        failed = output.pop() if fails else None
        return _Built(plan, output.pop(), spark.seq(output), failed)

    def expand(self, node: Any, children: list[_Built]) -> _Built:
        """Several rows per event: a marked event passes as the first of them."""
        spark, below = self.spark, children[0]
        rows = [list(plans.elements(row)) for row in plans.elements(node.projections())]
        risky = [(row, i) for row in rows for i in self.judge.risky(row)]
        below, values = self.attempt([row[i] for row, i in risky], below)
        for (row, i), value in zip(risky, values, strict=True):
            row[i] = value
        output = list(plans.elements(node.output()))
        number = spark.attribute(spark.alias(spark.literal(0), ROW))
        beside = [a for a in (below.hidden, below.failed) if a is not None]
        numbered = [[*row, *beside, spark.literal(i)] for i, row in enumerate(rows)]
        plan = spark.expand(numbered, [*output, *beside, number], below.plan)
        if below.failed is not None:
            first = spark.equal(number, spark.literal(0))
            plan = spark.filter(spark.either(spark.is_null(below.failed), first), plan)
        return replace(below, plan=plan, given=node.output())

    def generate(self, node: Any, children: list[_Built]) -> _Built:
        """A generator: a marked event passes with NULLs as the generated columns."""
        spark, below, generator = self.spark, children[0], node.generator()
        # An array is not repeated for each of its elements.
        used = {id_of(a) for a in plans.elements(generator.references().toSeq())}
        given = spark.seq([a for a in plans.elements(node.output()) if id_of(a) not in used])
        inputs = list(plans.elements(generator.children()))
        if below.failed is None and not self.judge.risky(inputs):
            plan = node.withNewChildren(spark.seq([below.plan]))
        elif plans.name(generator) in EXPLODING:
            below, (collection,) = self.attempt(inputs, below)
            plan = below.plan
            if not node.outer():
                plan = spark.filter(self.or_failed(below, spark.has_elements(collection)), plan)
            none = spark.null(collection.dataType())
            collection = spark.when(spark.is_null(below.failed), collection, none)
            generator = generator.withNewChildren(spark.seq([collection]))
            plan = spark.generate(generator, node.generatorOutput(), plan)
        else:
            self.judge.require(node, [], below.failed)
            plan = node.withNewChildren(spark.seq([below.plan]))
        return replace(below, plan=plan, given=given)

    def join(self, node: Any, children: list[_Built]) -> _Built:
        """A join with literals: a marked event passes without a partner."""
        spark, first = self.spark, children[0].hidden is not None
        below, other = children if first else reversed(children)
        given, found = node.output(), node.condition()
        condition = found.get() if found.isDefined() else None
        if condition is not None:
            own = {id_of(a) for a in plans.elements(below.plan.output())}
            below, values = self.attempt(self.judge.parts(condition, own), below)
            condition = self.judge.with_parts(condition, own, values)
            self.judge.require_condition(node, condition)
        kind = plans.name(node.joinType())
        if below.failed is not None:
            sound = spark.is_null(below.failed)
            condition = sound if condition is None else spark.both(sound, condition)
            if kind == "LeftSemi":
                self.judge.require(node, [], below.failed)
        matched = None
        if below.failed is not None and kind in ("Inner", "Cross"):
            kind = "LeftOuter" if first else "RightOuter"
            matched = spark.alias(spark.literal(True), MATCHED)
            other = replace(
                other, plan=spark.project([*plans.elements(other.plan.output()), matched], other.plan)
            )
        sides = (below.plan, other.plan) if first else (other.plan, below.plan)
        plan = spark.join(*sides, kind, condition, like=node)
        if matched is not None:
            has_partner = spark.negated(spark.is_null(spark.attribute(matched)))
            plan = spark.filter(self.or_failed(below, has_partner), plan)
        return replace(below, plan=plan, given=given)

    def attempt(self, computed: Sequence[Any], below: _Built) -> tuple[_Built, list[Any]]:
        """The plan below with the values of expressions; an event on which any of them fails is marked."""
        if not computed:
            return below, []
        spark = self.spark
        struct = spark.struct((str(i), expression) for i, expression in enumerate(computed))
        made = spark.alias(spark.tried(struct), TRIED)
        before = list(plans.elements(below.plan.output()))
        tried = spark.attribute(made)
        told = spark.to_json(spark.struct((a.name(), a) for a in plans.elements(below.given)), EXACT)
        failed = spark.when(spark.is_null(tried), told, spark.no_text())
        if below.failed is not None:
            failed = spark.when(spark.is_null(below.failed), failed, below.failed)
            before = [a for a in before if id_of(a) != id_of(below.failed)]
        failed = spark.alias(failed, FAILED)
        plan = spark.project([*plans.elements(below.plan.output()), made], below.plan)
        plan = spark.project([*before, tried, failed], plan)
        values = [spark.field(tried, i) for i in range(len(computed))]
        return replace(below, plan=plan, failed=spark.attribute(failed)), values

    def or_failed(self, below: _Built, condition: Any) -> Any:
        """Whether a condition is true, or the event is marked."""
        if below.failed is None:
            return condition
        spark = self.spark
        return spark.either(spark.negated(spark.is_null(below.failed)), condition)

    def unknown(self, kind: Any) -> Any:
        """The hidden column of a row that does not come from the input: a struct whose fields are NULL."""
        if kind.typeName() != "struct":
            return self.spark.null(kind)
        return self.spark.struct((each.name(), self.spark.null(each.dataType())) for each in kind.fields())

    def passing(self, wanted: Any, below: _Built) -> Any:
        """A projection of columns, a Scala sequence, that also passes the carried columns."""
        carried = below.given if below.failed is None else below.given.prepended(below.failed)
        wanted = self.spark.united(wanted, carried.prepended(below.hidden))
        return self.spark.project(wanted, below.plan)
