from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest

from penstock.specs.documents import KINDS
from tests.api.kit import pipeline, stream


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    assert {"listPipelines", "createStream", "patchSink", "rollbackTask", "getSourceRevision"} <= set(ids)
    for operation in operations:
        assert operation["summary"], operation
        assert operation["tags"], operation
        assert "HTTPValidationError" not in json.dumps(operation)
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")) and operation["operationId"] != "getReadiness":
                shared = answer == {"$ref": f"#/components/responses/Error{status}"}
                assert shared or re.search("(Misfits|Refused)ErrorBody", json.dumps(answer))
    for answer in document["components"]["responses"].values():
        assert answer["content"]["application/json"]["schema"]["$ref"].endswith("ErrorBody")


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert named <= set(schemas)
    assert not [name for name in schemas if "__" in name or "-" in name]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_schemas_of_bodies_tell_right_from_wrong(document: dict[str, Any]) -> None:
    def valid(kind: str, body: dict[str, Any]) -> bool:
        schema = {**document, "$ref": f"#/components/schemas/{kind}"}
        return bool(jsonschema.Draft202012Validator(schema).is_valid(body))

    assert valid("PipelineDocument", pipeline("orders"))
    assert valid("PipelineDocument", pipeline("orders", sinks=[{"ref": "lake", "required": False}]))
    assert not valid("PipelineDocument", pipeline("orders", sinks=[{"type": "nowhere"}]))
    assert not valid("PipelineDocument", pipeline("orders", source={"rate": 3}))
    assert not valid("PipelineDocument", pipeline("a/b"))
    assert valid("StreamDocument", {"metadata": {"name": "x"}})
    assert not valid("StreamDocument", stream("x", colour="red"))
    assert valid("Documents", [stream("x"), pipeline("y")])
    assert valid("Documents", {"kind": "Bundle", "documents": [stream("x")]})
    assert not valid("Documents", {"metadata": {"name": "x"}})
    assert {f"{kind}Document" for kind in KINDS} <= set(document["components"]["schemas"])


def test_the_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert not re.findall(r"<script|(?:src|href)=['\"]?(?:https?:)?//", page.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for text in ("/pipelines/{name}/pause", "Create a stream", "id='PipelineDocument'", "max_inflight"):
        assert text in page.text
