"""The OpenAPI document: the routes, as described by FastAPI, and the schemas of the documents they accept.

`python -m penstock.api.openapi` prints it without a server; the types of the web app are generated from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic.json_schema import models_json_schema

from penstock.api.access.cookies import COOKIE
from penstock.api.access.rules import declared_rules
from penstock.api.errors import failures
from penstock.control.access.roles import PUBLIC
from penstock.specs.documents import API_VERSION, KINDS, Models

_REF = "#/components/schemas/"


SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of `POST /tokens`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "Set by `POST /session`. What changes something also needs `X-CSRF-Token`.",
    },
}


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, with the schemas of all kinds of documents."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    schemas = document["components"]["schemas"]
    for name, schema in _documents().items():
        if name in schemas:
            raise ValueError(f"two schemas are called {name}")
        schemas[name] = schema
    _add_roles(app, document)
    document["components"]["responses"] = _shared_errors(document)
    return document


def _add_roles(app: FastAPI, document: dict[str, Any]) -> None:
    """Add the required role to each operation. While authentication is off, every caller has all roles."""
    document["components"]["securitySchemes"] = SCHEMES
    refusals = {
        str(status): {
            "description": answer["description"],
            "content": {"application/json": {"schema": {"$ref": f"{_REF}ErrorBody"}}},
        }
        for status, answer in failures(401, 403).items()
    }
    rules = declared_rules()
    for route in iter_route_contexts(app.routes):
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is None:
                continue
            role = rules[f"{method} {route.path}"].role
            operation["x-penstock-role"] = role
            if role != PUBLIC:
                operation["security"] = [{}, *({name: []} for name in SCHEMES)]
                operation["responses"] = {**operation["responses"], **refusals}


def _shared_errors(document: dict[str, Any]) -> dict[str, Any]:
    """The error responses that many routes share, by name; each route then refers to them."""
    shared: dict[str, Any] = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            for status, answer in answers.items():
                if {"$ref": f"{_REF}ErrorBody"} in [
                    c.get("schema") for c in answer.get("content", {}).values()
                ]:
                    shared[f"Error{status}"] = answer
                    answers[status] = {"$ref": f"#/components/responses/Error{status}"}
    return shared


def _documents() -> dict[str, Any]:
    models = [(model, "validation") for model in Models.by_kind.values()]
    schemas: dict[str, Any] = models_json_schema(models, ref_template=_REF + "{model}")[1]["$defs"]  # type: ignore[arg-type]
    for schema in schemas.values():
        # The type has a default for use in Python; a document has to set it.
        if "const" in schema.get("properties", {}).get("type", {}):
            schema["required"] = ["type", *schema.get("required", [])]
    for kind in KINDS:
        # Where only one kind is accepted, `kind` is optional.
        schemas[f"{kind}Document"]["required"].remove("kind")
    each = {"anyOf": [{"$ref": f"{_REF}{kind}Document", "required": ["kind"]} for kind in KINDS]}
    several = {"type": "array", "items": {"$ref": f"{_REF}AnyDocument"}}
    bundle = {
        "type": "object",
        "description": "Documents in one file.",
        "properties": {
            "apiVersion": {"const": API_VERSION, "default": API_VERSION},
            "kind": {"const": "Bundle"},
            "documents": several,
        },
        "required": ["kind", "documents"],
        "additionalProperties": False,
    }
    documents = {"anyOf": [{"$ref": f"{_REF}AnyDocument"}, several, {"$ref": f"{_REF}Bundle"}]}
    return {**schemas, "AnyDocument": each, "Bundle": bundle, "Documents": documents}


def _print() -> None:
    from penstock.api.app import create_app  # it imports this module
    from penstock.control.documents.service import Service
    from penstock.control.registry import Registry
    from penstock.settings import load

    with TemporaryDirectory() as home:
        loaded = load({"home": Path(home)}, env={}, cwd=Path(home))
        registry = Registry.open(loaded.settings.registry_url)
        print(json.dumps(create_app(Service(loaded, registry)).openapi(), indent=1))
        registry.close()


if __name__ == "__main__":
    _print()
