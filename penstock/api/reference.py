"""The OpenAPI document as an HTML page that needs no other server, scripts or fonts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """\
:root { color-scheme: light dark; --line: #8884 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, .method { font-family: ui-monospace, monospace; font-size: .92em }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem }
summary { cursor: pointer }
summary .what { opacity: .75; margin-left: .6rem }
.method { display: inline-block; width: 4.5rem; font-weight: 600 }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
tr { border-top: 1px solid var(--line) }
th { font-weight: 600; opacity: .75 }
"""


def render(document: Mapping[str, Any]) -> str:
    """The page: operations by tag, then every schema they refer to."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    return "\n".join(
        [
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{title} API</title>",
            "<meta name=viewport content='width=device-width'>",
            f"<style>{_STYLE}</style><h1>{title}: REST API</h1>",
            f"<p>{escape(document['info']['description'])}",
            "For programs: <a href=/openapi.json>OpenAPI</a>.</p>",
            *_operations(document),
            "<h2>schemas</h2>",
            *(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())),
            "</html>",
        ]
    )


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    shared = document["components"].get("responses", {})
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = {
                status: shared[answer["$ref"].rsplit("/", 1)[1]] if "$ref" in answer else answer
                for status, answer in sorted(operation["responses"].items())
            }
            by_tag.setdefault(operation["tags"][0], []).append(_operation(path, method, operation, answers))
    for tag, operations in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>"
        yield from operations


def _operation(
    path: str, method: str, operation: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]
) -> str:
    parts = [
        f"<details id='{escape(operation['operationId'])}'><summary>",
        f"<span class=method>{method.upper()}</span>",
        f"<code>{escape(path)}</code><span class=what>{escape(operation['summary'])}</span></summary>",
        f"<p>{escape(operation.get('description', ''))}</p>",
    ]
    if parameters := operation.get("parameters"):
        rows = (
            [
                f"<code>{escape(p['name'])}</code>",
                p["in"],
                _type(p["schema"]),
                escape(p.get("description", "")),
            ]
            for p in parameters
        )
        parts.append(_table(["parameter", "in", "type", "meaning"], rows))
    if body := operation.get("requestBody"):
        rows = ([escape(kind), _type(content["schema"])] for kind, content in body["content"].items())
        parts.append(_table(["body", "type"], rows))
    rows = (
        [
            status,
            escape(answer["description"]),
            " ".join(_type(c.get("schema", {})) for c in _contents(answer)),
        ]
        for status, answer in answers.items()
    )
    parts.append(_table(["answer", "meaning", "type"], rows))
    return "".join([*parts, "</details>"])


def _contents(answer: Mapping[str, Any]) -> list[Any]:
    return list(answer.get("content", {}).values())[:1]


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = (
        [
            f"<code>{escape(field)}</code>{' *' if field in required else ''}",
            _type(inner),
            escape(inner.get("description", "")),
        ]
        for field, inner in schema.get("properties", {}).items()
    )
    fields = (
        _table(["field", "type", "meaning"], rows) if "properties" in schema else f"<p>{_type(schema)}</p>"
    )
    title, about = f"<summary><code>{escape(name)}</code></summary>", escape(schema.get("description", ""))
    return f"<details id='{escape(name)}'>{title}<p>{about}</p>{fields}</details>"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with links to named schemas."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " | ".join(_type(each) for each in schema[choice])
    for fixed in ("const", "enum"):
        if fixed in schema:
            values = [schema[fixed]] if fixed == "const" else schema[fixed]
            return " | ".join(f"<code>{escape(str(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    return escape(str(schema.get("type", "any")))


def _table(titles: list[str], rows: Iterator[list[str]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
