"""The first check of user SQL: it may transform its input event, and nothing else.

The check runs on the plan built by Spark's parser, never on the text, and against allowlists: a construct
that this module does not know is rejected. The checked plan is also the one that runs: the caller analyzes
this same plan and never parses the text again.
"""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import Invalid, did_you_mean, nearest
from penstock.spark import plans
from penstock.spark.catalyst import Catalyst
from penstock.sql import functions
from penstock.sql.problems import NOT_A_QUERY, ROW_BY_ROW_HINT, refuse

PLANS = frozenset(
    {
        "Aggregate", "Distinct", "Except", "Filter", "Generate", "GlobalLimit", "Intersect", "Join",
        "LateralJoin", "LocalLimit", "LocalRelation", "Offset", "OneRowRelation", "PipeOperator", "Pivot",
        "Project", "Sample", "Sort", "SubqueryAlias", "Union", "Unpivot",
        "UnresolvedHaving", "UnresolvedHint", "UnresolvedInlineTable", "UnresolvedQualify",
        "UnresolvedRelation", "UnresolvedSubqueryColumnAliases", "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction", "UnresolvedWith", "WithWindowDefinition",
    }
)  # fmt: skip

EXPRESSIONS = frozenset(
    {
        "Add", "Alias", "And", "AnyValue", "AttributeReference", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
        "BitwiseXor", "CaseWhen", "Cast", "Coalesce", "Collate", "Concat", "CreateNamedStruct", "Cube",
        "CurrentDate", "CurrentRow", "CurrentTime", "CurrentTimestamp", "Divide", "EqualNullSafe", "EqualTo",
        "Exists", "First", "GreaterThan", "GreaterThanOrEqual", "GroupingSets", "ILike", "In", "InSubquery",
        "IntegralDivide", "IsNotNull", "IsNull", "JsonTable", "LambdaFunction", "Last", "LateralSubquery",
        "LessThan", "LessThanOrEqual", "Like", "LikeAll", "LikeAny", "ListQuery", "Literal", "Lower",
        "MultiAlias", "Multiply", "NamePlaceholder", "NamedArgumentExpression", "Not", "NotLikeAll",
        "NotLikeAny", "Or", "Overlay", "PipeExpression", "RLike", "Remainder", "Rollup", "ScalarSubquery",
        "SemiStructuredExtract", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned", "SortOrder",
        "SpecifiedWindowFrame", "StringLocate", "StringTrim", "StringTrimLeft", "StringTrimRight",
        "Substring", "Subtract", "TimestampAdd", "TimestampDiff", "UnaryMinus", "UnaryPositive",
        "UnboundedFollowing", "UnboundedPreceding", "Unnest", "UnresolvedAlias", "UnresolvedAttribute",
        "UnresolvedCollation", "UnresolvedExtractValue", "UnresolvedFunction", "UnresolvedGenerator",
        "UnresolvedNamedLambdaVariable", "UnresolvedOrdinal", "UnresolvedPipeAggregateOrdinal",
        "UnresolvedRegex", "UnresolvedStar", "UnresolvedStarExceptOrReplace", "UnresolvedWindowExpression",
        "UnspecifiedFrame", "WindowExpression", "WindowSpecDefinition", "WindowSpecReference",
    }
)  # fmt: skip

FEW = 5
"""The maximum number of tables that an error lists; otherwise it states their number."""

WINDOWS = frozenset({"UnresolvedWindowExpression", "WindowExpression"})

SUBQUERIES = frozenset({"Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"})

REASONS = {
    "ScriptTransformation": "TRANSFORM … USING is not allowed: it runs a program",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER() is not allowed",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER() is not allowed",
    "FunctionTableSubqueryArgumentExpression": "a TABLE argument is not allowed",
    "NamedParameter": "a parameter marker is not allowed: there are no parameters",
    "PosParameter": "a parameter marker is not allowed: there are no parameters",
    "RelationTimeTravel": "VERSION AS OF and TIMESTAMP AS OF are not allowed",
    "RelationChanges": "CHANGES is not allowed",
    "NamedStreamingRelation": "STREAM is not allowed: the input is already a stream",
    "CurrentUser": "current_user is not allowed: it reveals the account Penstock runs under",
    "CompoundBody": "BEGIN … END is not allowed: only one query",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE is not allowed",
    "InsertIntoStatement": "INSERT is not allowed",
    "UnresolvedEventTimeWatermark": "WATERMARK is not allowed: sql works row by row",
}


def check_query(spark: Catalyst, plan: Any, table: str) -> None:
    """Reject a parsed query that does anything other than transform `table`."""
    if plan is None:
        raise Invalid(NOT_A_QUERY)
    _check(spark, plan, frozenset({table.lower()}), PLANS | EXPRESSIONS)


def check_tables(spark: Catalyst, plan: Any, tables: frozenset[str]) -> set[str]:
    """Reject a parsed query that does more than read `tables`, in lower case; returns those it names."""
    if plan is None:
        raise Invalid(NOT_A_QUERY)
    return _check(spark, plan, tables, PLANS | EXPRESSIONS) & tables


def check_expression(spark: Catalyst, expression: Any) -> None:
    """Reject a parsed expression that does anything other than compute from the event's columns."""
    _check(spark, expression, frozenset(), EXPRESSIONS - SUBQUERIES - WINDOWS)


def _check(spark: Catalyst, root: Any, tables: frozenset[str], allowed: frozenset[str]) -> set[str]:
    """Check every node, with its visible tables, and whether Spark evaluates it to a constant immediately.

    Returns the names of the tables in the query.

    The second check cannot see expressions that become constants, so they must not contain names: a name
    could be a session variable, or `current_user`.
    """
    waiting = [(spark.parsed(root), tables, False)]
    named: set[str] = set()
    while waiting:
        node, visible, constant = waiting.pop()
        name = node.name
        if name in WINDOWS and name not in allowed:
            message = "a window function is not possible here: the step sees one event at a time"
            raise refuse("stateful_sql", message, ROW_BY_ROW_HINT, node.at)
        if name not in allowed:
            raise refuse("sql_forbidden", _reason(name), at=node.at)
        if constant and name == "UnresolvedAttribute":
            shown = ".".join(node.fields["nameParts"])
            message = f"'{shown}' cannot be used here: VALUES and range() see no columns"
            raise refuse("sql_error", message, at=node.at)
        if name in plans.LEAVES:
            continue
        if name == "UnresolvedWith":
            waiting.extend((part, seen, constant) for part, seen in _scopes(node, visible))
            continue
        if name == "UnresolvedRelation":
            named.add(_check_relation(node, visible))
        elif name == "UnresolvedInlineTable":
            constant = True
        elif name == "UnresolvedTableValuedFunction":
            constant |= _check_table_function(node) == "range"
        elif name == "UnresolvedFunction":
            _check_function(spark.jvm, node, node.fields["nameParts"])
        elif name == "UnresolvedGenerator":
            called = node.fields["name"]
            _check_function(spark.jvm, node, [*called["database"], called["funcName"]])
        waiting.extend((part, visible, constant) for part in node.parts())
    return named


def _scopes(node: plans.Node, visible: frozenset[str]) -> list[tuple[plans.Node, frozenset[str]]]:
    """The parts of a WITH, each with its visible names: an entry sees the entries before it, not itself."""
    if node.fields["allowRecursion"]:
        raise refuse("sql_forbidden", "WITH RECURSIVE is not allowed", at=node.at)
    scopes = []
    for entry in node.fields["cteRelations"]:
        scopes.append((entry["_2"], visible))
        visible |= {entry["_1"].lower()}
    return [*scopes, (node.fields["child"], visible)]


def _check_relation(node: plans.Node, visible: frozenset[str]) -> str:
    parts, at = node.fields["multipartIdentifier"], node.at
    if node.fields["isStreaming"]:
        raise refuse("sql_forbidden", REASONS["NamedStreamingRelation"], at=at)
    if len(parts) > 1:
        shown = ".".join(parts)
        hint = f"use `{shown}`" if shown.lower() in visible else None
        raise refuse("sql_forbidden", f"table {shown} is not allowed: only {_only(visible)}", hint, at)
    if parts[0].lower() not in visible:
        hint = did_you_mean(parts[0], visible)
        raise refuse("unknown_table", f"there is no table '{parts[0]}': only {_only(visible)}", hint, at)
    if node.fields["options"]:
        raise refuse("sql_forbidden", "options of a table are not allowed", at=at)
    return str(parts[0]).lower()


def _only(visible: frozenset[str]) -> str:
    if len(visible) > FEW:
        return f"the {len(visible)} there are"
    return " and ".join(f"'{name}'" for name in sorted(visible)) or "none"


def _check_table_function(node: plans.Node) -> str:
    shown = ".".join(node.fields["name"])
    if shown.lower() not in functions.TABLE_FUNCTIONS:
        hint = f"one of: {', '.join(sorted(functions.TABLE_FUNCTIONS))}"
        message = f"table function {shown}() is not allowed"
        raise refuse("sql_forbidden", message, hint, node.at)
    return shown.lower()


def _check_function(jvm: Any, node: plans.Node, parts: list[str]) -> None:
    at = node.at
    shown = ".".join(parts)
    name = shown.lower()
    if len(parts) > 1:
        hint = f"use {parts[-1]}()" if parts[-1].lower() in functions.builtin(jvm) else None
        raise refuse("sql_forbidden", f"function {shown}() is not allowed: only built-in functions", hint, at)
    if reason := functions.DENIED.get(name):
        raise refuse("sql_forbidden", f"function {name}() is not allowed: {reason}", at=at)
    known = functions.builtin(jvm)
    if name not in known:
        close = nearest(name, known - functions.DENIED.keys())
        hint = f"did you mean '{close}'?" if close else "only Spark's built-in functions are available"
        raise refuse("unknown_function", f"there is no function {shown}()", hint, at)
    if node.name == "UnresolvedFunction" and (refusal := functions.arguments_refusal(name, node)):
        raise refuse("sql_forbidden", refusal, at=at)


def _reason(name: str) -> str:
    """The message for a rejected construct: its own, or with the name of its node, such as SHOW TABLES."""
    if name in SUBQUERIES:
        return "a subquery is not allowed here: use an sql step"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.rpartition(".")[2]).upper()
    return REASONS.get(name, f"{words} is not allowed")
