"""The functions that user SQL may call.

A function must be built into Spark and must not access anything except its arguments. `input_file_name()` is
allowed: it returns the origin of the event. So are `raise_error()` and `assert_true()`: they fail the event.
"""

from __future__ import annotations

from typing import Any

from penstock.spark import plans

DENIED = {
    "reflect": "it calls Java methods",
    "java_method": "it calls Java methods",
    "try_reflect": "it calls Java methods",
    "from_protobuf": "it reads a descriptor file",
    "to_protobuf": "it reads a descriptor file",
    "current_user": "it reveals the account Penstock runs under",
    "session_user": "it reveals the account Penstock runs under",
    "user": "it reveals the account Penstock runs under",
}

DENIED_NODES = {
    "CallMethodViaReflection": "calling Java methods is not allowed",
    "TryReflect": "calling Java methods is not allowed",
    "CurrentUser": "current_user is not allowed: it reveals the account Penstock runs under",
    "VariableReference": "session variables are not allowed",
    "PythonUDF": "user-defined functions are not allowed",
    "ScalaUDF": "user-defined functions are not allowed",
    "ScalaAggregator": "user-defined functions are not allowed",
    "ApplyFunctionExpression": "functions of a catalog are not allowed",
}
"""Expressions that user SQL must not contain in the analyzed plan.

The parsed text is checked first; this catches cases that are only visible after name resolution, such as
`current_user` without parentheses, and a function that was registered under the name of a built-in one.
"""

TABLE_FUNCTIONS = frozenset(
    {
        "explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode",
        "posexplode_outer", "range", "stack", "variant_explode", "variant_explode_outer",
    }
)  # fmt: skip

OPTIONS_AT = {
    "from_avro": 2, "from_csv": 2, "from_json": 2, "from_xml": 2,
    "schema_of_avro": 1, "schema_of_csv": 1, "schema_of_json": 1, "schema_of_xml": 1,
    "to_csv": 1, "to_json": 1, "to_xml": 1,
}  # fmt: skip
"""The index of the options argument of these functions. Some options make Spark open a file or a URL.

Spark evaluates options and schemas while it analyzes the query and keeps only the result, so they have to be
checked before, and must be plain text.
"""

DENIED_OPTIONS = {"rowvalidationxsdpath": "it reads a file", "avroschemaurl": "it reads a file or a URL"}

SCHEMA_AT = {"from_json": 1, "from_csv": 1, "from_xml": 1}
"""The index of the schema argument of these functions."""

_builtin: frozenset[str] = frozenset()


def builtin(jvm: Any) -> frozenset[str]:
    """The names of all built-in scalar and aggregate functions of this Spark version."""
    global _builtin
    if not _builtin:
        registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry
        _builtin = frozenset(f.funcName() for f in plans.elements(registry.functionSet()))
    return _builtin


def arguments_refusal(function: str, call: plans.Node) -> str | None:
    """The reason why a call of a permitted function is rejected for its arguments, or None."""
    arguments = call.fields["arguments"]
    options = OPTIONS_AT.get(function)
    if options is not None and (refusal := _options_refusal(function, arguments[options:])):
        return refusal
    schema = SCHEMA_AT.get(function)
    if schema is not None and len(arguments) > schema:
        return _schema_refusal(function, arguments[schema])
    return None


def _options_refusal(function: str, arguments: list[plans.Node]) -> str | None:
    for argument in arguments:
        if argument.name != "UnresolvedFunction" or _call_name(argument) != "map":
            return f"the options of {function}() must be given as map('name', 'value', …)"
        words = argument.fields["arguments"]
        if any(word.name != "Literal" for word in words):
            return f"the options of {function}() must be plain text"
        for option in (str(word.fields["value"]) for word in words[::2]):
            if reason := DENIED_OPTIONS.get(option.lower()):
                return f"option {option} of {function}() is not allowed: {reason}"
    return None


def _schema_refusal(function: str, argument: plans.Node) -> str | None:
    """The reason why a schema is rejected. Only DDL is safe: JSON can name classes and expressions to run."""
    kind = argument.name
    if kind == "UnresolvedFunction" and _call_name(argument).startswith("schema_of_"):
        samples = argument.fields["arguments"][:1]
        if all(sample.name == "Literal" for sample in samples):
            return None
    if kind == "Literal":
        text = str(argument.fields["value"]).lstrip()
        if text[:1].isalnum() or text[:1] in ("_", "`", ""):
            return None
    return f"the schema of {function}() must be given as text such as 'id BIGINT, name STRING'"


def _call_name(call: plans.Node) -> str:
    return ".".join(call.fields["nameParts"]).lower()
