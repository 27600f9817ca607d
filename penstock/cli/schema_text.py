"""A JSON Schema in words: one row for each field, nested models flattened into dotted names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.specs.conditions import KEY, condition_text

Schema = Mapping[str, Any]

LINKS = {
    "Source": "[source](connectors.md#sources)",
    "Sink": "[sink](connectors.md#sinks)",
    "Processor": "[processor](processors.md)",
}
"""The type shown for a field that holds any component of a role."""


@dataclass(frozen=True)
class Row:
    """A field as the reference shows it."""

    name: str
    type: str
    default: str
    description: str


def rows(schema: Schema) -> list[Row]:
    """Every field of a model."""
    return list(_rows(schema, schema.get("$defs", {}), ""))


def _rows(schema: Schema, defs: Schema, above: str) -> Iterator[Row]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        yield from _field(f"{above}{name}", field, defs, needed=name in required)


def _field(name: str, field: Schema, defs: Schema, *, needed: bool) -> Iterator[Row]:
    description = _described(field)
    target, optional = _without_null(field)
    items = target.get("items", {})
    if "$ref" in target:
        model = _follow(target, defs)
        what = description or model.get("description", "")
        yield Row(name, "mapping" + (" or null" if optional else ""), _default(field, needed), what)
        yield from _rows(model, defs, f"{name}.")
    elif "$ref" in items:
        yield Row(name, "list of mappings", _default(field, needed), description)
        yield from _rows(_follow(items, defs), defs, f"{name}[].")
    elif found := _model(target, defs):
        yield Row(name, type_text(field), _default(field, needed), description)
        yield from _rows(found, defs, f"{name}.")
    elif found := _model(target.get("additionalProperties"), defs):
        yield Row(name, type_text(field), _default(field, needed), description)
        yield from _rows(found, defs, f"{name}.*.")
    elif "oneOf" in target or "oneOf" in items:
        members = [(_name(ref), _follow(ref, defs)) for ref in (target.get("oneOf") or items["oneOf"])]
        link = next((text for role, text in LINKS.items() if role in members[0][0]), "mapping")
        many = f"list of {link}s" if "oneOf" in items else link
        yield Row(name, many, _default(field, needed), description)
        yield from _common(f"{name}[]." if "oneOf" in items else f"{name}.", members, defs)
    else:
        yield Row(name, type_text(field), _default(field, needed), description)


def _described(field: Schema) -> str:
    """The description of a field, with its condition."""
    text, condition = field.get("description", ""), field.get(KEY)
    return f"{text} Only with {condition_text(condition)}." if condition else text


def _model(schema: Any, defs: Schema) -> Schema | None:
    """The model of a value, if it can be an instance of one; a shorter form may be possible too."""
    options = schema.get("anyOf", [schema]) if isinstance(schema, Mapping) else ()
    return next((_follow(option, defs) for option in options if "$ref" in option), None)


def _common(above: str, members: list[tuple[str, Schema]], defs: Schema) -> Iterator[Row]:
    """The fields that all components share, and the fields that replace a component."""
    components = [model for _, model in members if "type" in model["properties"]]
    shared = set.intersection(*(set(model["properties"]) for model in components)) - {"type"}
    for name, field in components[0]["properties"].items():
        if name in shared:
            yield from _field(above + name, field, defs, needed=False)
    for _, model in members:
        if "type" not in model["properties"]:
            for name, field in model["properties"].items():
                if name not in shared:
                    yield Row(above + name, type_text(field), "instead of `type`", field["description"])


def type_text(schema: Schema) -> str:
    """The type of a value, with its limits."""
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(type_text(each) for each in schema[choice])
    if "$ref" in schema:
        return "mapping"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_plural(schema.get('items', {}))}"
    if isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"map of {_plural(inner)}"
    return str(schema.get("type", "any")).replace("object", "mapping") + _limits(schema)


def _plural(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(_plural(each) for each in schema["anyOf"])
    kind, of, inner = type_text(schema).partition(" of ")
    return f"{kind}s{of}{inner}"


def _limits(schema: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {schema[key]}" for key, sign in signs.items() if key in schema)


def _default(field: Schema, needed: bool) -> str:
    if needed or (field.get("title") == "Type" and "const" in field):  # the type of a component
        return "**required**"
    value = field.get("default")
    return "" if value in (None, "") else f"`{json.dumps(value) if not isinstance(value, str) else value}`"


def _without_null(field: Schema) -> tuple[Schema, bool]:
    options = field.get("anyOf", [])
    real = [option for option in options if option.get("type") != "null"]
    return (real[0], True) if len(options) == 2 and len(real) == 1 else (field, False)


def _follow(reference: Schema, defs: Schema) -> Schema:
    model: Schema = defs[_name(reference)]
    return model


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
