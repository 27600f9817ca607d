"""The second check of user SQL, on the resolved plan: only permitted nodes, and no state over the stream.

The sql step works row by row. Stateful constructs, such as GROUP BY, are rejected here with a hint instead of
failing when the query starts, on static frames as well as on streams: a test run must not accept a query that
the pipeline cannot run. Over literals (VALUES, range) everything is allowed, as there is no stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from penstock.errors import Invalid
from penstock.spark import plans
from penstock.spark.catalyst import Catalyst
from penstock.sql import functions
from penstock.sql.problems import ROW_BY_ROW_HINT, refuse

ROW_BY_ROW = frozenset(
    {
        "CTERelationDef", "CTERelationRef", "Expand", "Filter", "Generate", "Join", "LateralJoin",
        "LocalRelation", "OneRowRelation", "PipeOperator", "Project", "Range", "RebalancePartitions",
        "Repartition", "RepartitionByExpression", "ResolvedHint", "SubqueryAlias", "Union", "View", "WithCTE",
    }
)  # fmt: skip

STATEFUL = {
    "Aggregate": "GROUP BY or an aggregate function",
    "Deduplicate": "removing duplicates",
    "Distinct": "DISTINCT or UNION without ALL",
    "Except": "EXCEPT",
    "GlobalLimit": "LIMIT",
    "Intersect": "INTERSECT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Sample": "TABLESAMPLE",
    "Sort": "ORDER BY or SORT BY",
    "Window": "a window function",
}

JOIN_HINT = "join with VALUES only, and keep input on the side whose rows are all kept"
SUBQUERY_HINT = "join with VALUES, use LATERAL explode(…), or functions of arrays such as exists()"

SUBQUERIES = frozenset({"Exists", "LateralSubquery", "ListQuery", "ScalarSubquery"})

_LEFT_KEPT = frozenset({"LeftOuter", "LeftSemi", "LeftAnti"})


def check_query(spark: Catalyst, plan: Any, table: str) -> None:
    """Reject an analyzed query that has forbidden nodes, needs state over `table` or never reads it."""
    if not _Query(table).reads(spark.tree(plan)):
        message = f"the query does not read '{table}', so it would produce no events"
        raise refuse("sql_error", message, f"select FROM {table}")


def check_tables(spark: Catalyst, plan: Any, tables: Collection[str]) -> None:
    """Reject an analyzed query with forbidden nodes. State is allowed, since the tables are finite."""
    waiting = [spark.tree(plan)]
    while waiting:
        node = waiting.pop()
        _check_plan(node)
        if node.name == "View":
            _check_view(node, tables)
            continue
        for expression in node.expressions:
            waiting.extend(subquery.fields["plan"] for subquery in _check_expression(expression))
        waiting.extend(node.children)


def check_column(spark: Catalyst, plan: Any) -> None:
    """Reject the analyzed projection of one expression unless it computes one value from one event."""
    name = plans.name(plan)
    if name == "Aggregate":
        raise stateful("an aggregate function", "the events")
    if name != "Project" or plans.name(plan.child()) == "Generate":
        hint = "use an sql step: SELECT …, explode(…) FROM input"
        raise refuse("sql_forbidden", "an expression that produces several rows is not allowed here", hint)
    for expression in spark.trees(plan.expressions()):
        _check_expression(expression)


def check_aggregate(spark: Catalyst, plan: Any) -> None:
    """Reject the analyzed aggregation of one expression unless Spark can compute it incrementally."""
    if plans.name(plan) != "Aggregate" or plans.name(plan.child()) == "Generate":
        raise refuse("sql_forbidden", "an expression that produces several rows is not allowed here")
    for expression in spark.trees(plan.expressions()):
        _check_expression(expression)
    calls = list(aggregate_calls(plan))
    if not calls:
        hint = "use an aggregate function, such as count(*), sum(…) or max(…)"
        raise refuse("sql_error", "the expression doesn't aggregate events", hint)
    for call in calls:
        if call.isDistinct():
            hint = "use size(collect_set(…)), or approx_count_distinct(…) for many values"
            message = "DISTINCT in an aggregate is not possible over a stream"
            raise refuse("stateful_sql", message, hint, plans.position(call))


def aggregate_inputs(plan: Any) -> list[Any]:
    """The expressions over single events in an analyzed aggregation, without plain columns and values."""
    found: list[Any] = []
    for call in aggregate_calls(plan):
        condition = call.filter()
        found += plans.elements(call.aggregateFunction().children())
        found += [condition.get()] if condition.isDefined() else []
    return [expression for expression in found if plans.name(expression) not in plans.LEAVES]


def aggregate_calls(plan: Any) -> Iterator[Any]:
    """The calls of aggregate functions in an aggregation."""
    waiting = list(plans.elements(plan.aggregateExpressions()))
    while waiting:
        node = waiting.pop(0)
        if plans.name(node) == "AggregateExpression":
            yield node
        elif plans.name(node) not in plans.LEAVES:
            waiting.extend(plans.elements(node.children()))


def stateful(
    what: str, table: str, at: tuple[int, int] | None = None, hint: str = ROW_BY_ROW_HINT
) -> Invalid:
    """The error for a construct that would need state."""
    return refuse("stateful_sql", f"{what} over {table} is not possible: sql works row by row", hint, at)


def _check_plan(node: plans.Node) -> None:
    if node.name not in ROW_BY_ROW and node.name not in STATEFUL:
        message = f"{node.name.rpartition('.')[2]} is not allowed"
        raise refuse("sql_forbidden", message, at=node.at)


def _check_view(view: plans.Node, tables: Collection[str]) -> None:
    """Reject a view other than the known ones; its inside is not user SQL and is not checked."""
    shown = view.fields["table"]
    if not view.fields["temporary"] or shown.lower() not in [table.lower() for table in tables]:
        raise refuse("sql_forbidden", f"view {shown} is not allowed", at=view.at)


def _check_expression(root: plans.Node) -> list[plans.Node]:
    """Reject forbidden parts of an expression; returns its subqueries."""
    subqueries = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if refusal := functions.DENIED_NODES.get(node.name.rpartition(".")[2]):
            raise refuse("sql_forbidden", refusal, at=node.at)
        if node.name in plans.LEAVES:
            continue
        if node.name in SUBQUERIES:
            subqueries.append(node)
        waiting.extend(node.children)
    return subqueries


class _Query:
    """One traversal of an analyzed query, which determines the parts that read the table."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.cte_reads: dict[int, bool] = {}

    def reads(self, node: plans.Node) -> bool:
        """Whether a subtree reads the table."""
        name = node.name
        _check_plan(node)
        if name == "View":
            _check_view(node, [self.table])
            return True
        if name == "CTERelationRef":
            return self.cte_reads[node.fields["cte"]]
        if name == "WithCTE":
            *definitions, plan = node.children
            for definition in definitions:
                self.cte_reads[definition.fields["cte"]] = self.reads(definition)
            return self.reads(plan)
        for expression in node.expressions:
            for subquery in _check_expression(expression):
                self.check_subquery(subquery)
        children = [self.reads(child) for child in node.children]
        if name in STATEFUL and any(children):
            raise stateful(STATEFUL[name], f"'{self.table}'", node.at)
        if name == "Join":
            self.check_join(node, *children)
        return any(children)

    def check_join(self, node: plans.Node, left: bool, right: bool) -> None:
        """Check a join: a stream joins only with literals, and only if no row has to wait for a partner."""
        kind = node.fields["kind"].rpartition(".")[2]
        if left and right:
            raise stateful("a join with itself", f"'{self.table}'", node.at, JOIN_HINT)
        waits = (right and kind in _LEFT_KEPT) or (left and kind == "RightOuter") or kind == "FullOuter"
        if waits and (left or right):
            raise stateful("this kind of join", f"'{self.table}'", node.at, JOIN_HINT)

    def check_subquery(self, subquery: plans.Node) -> None:
        """Check a subquery: it must not read the stream, and must join with its row without state."""
        if self.reads(subquery.fields["plan"]):
            raise stateful("a subquery", f"'{self.table}'", subquery.at, JOIN_HINT)
        if subquery.fields["outerAttrs"] and not _joins_by_row(subquery):
            raise stateful("this correlated subquery", f"'{self.table}'", subquery.at, SUBQUERY_HINT)


def _joins_by_row(subquery: plans.Node) -> bool:
    """Whether Spark turns a correlated subquery into a projection, a generator or a plain join.

    Spark turns any other into a join with the distinct values of the outer row: an aggregate over the
    stream, which fails only when the query runs.
    """
    plan = subquery.fields["plan"]
    projects = filters = False
    while plan.name in ("Project", "Filter", "SubqueryAlias"):
        outer = any("outer" in expression.fields for expression in plan.expressions)
        projects |= outer and plan.name == "Project"
        filters |= plan.name == "Filter"
        (plan,) = plan.children
    if plan.name == "OneRowRelation":
        return not filters
    if plan.name == "Generate" and plan.children[0].name == "OneRowRelation":
        return not (filters or projects) and subquery.name == "LateralSubquery"
    return not projects and "outer" not in plan.fields
