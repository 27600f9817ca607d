"""What a server says to documents that reach for what they must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.kit import Api, pipeline

METADATA = "http://169.254.169.254/latest/meta-data/"


def told(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    assert all(error["hint"] for error in answer.json()["errors"])
    return [(error["code"], error["path"]) for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("part", "code", "path"),
    [
        ({"source": {"type": "file", "path": "/etc/passwd", "format": "text"}}, "path_not_allowed",
         "spec.source.path"),
        ({"sinks": [{"type": "file", "path": "../../../../../../etc/x", "format": "json"}]},
         "path_not_allowed", "spec.sinks[0].path"),
        ({"sinks": [{"type": "http", "url": METADATA}]}, "address_not_allowed", "spec.sinks[0].url"),
        ({"processors": [{"type": "http", "url": METADATA, "into": "x"}]}, "address_not_allowed",
         "spec.processors[0].url"),
        ({"source": {"type": "spark", "format": "socket", "options": {"host": "h", "port": "1"}}},
         "format_not_allowed", "spec.source.format"),
        ({"processors": [{"type": "sql", "query": "SELECT '${PATH}' AS p FROM input"}]},
         "variable_not_allowed", "spec.processors[0].query"),
    ],
)  # fmt: skip
def test_a_document_is_refused_before_it_is_saved(api: Api, part: Any, code: str, path: str) -> None:
    document = pipeline("reaching", "active", **part)
    assert told(api.client.post("/pipelines", json=document)) == [(code, path)]
    (judged,) = api.client.post("/validate", json=document).json()["documents"]
    assert [(each["code"], each["path"]) for each in judged["errors"]] == [(code, path)]


def test_a_sink_by_itself_and_a_bundle_are_refused_too(api: Api) -> None:
    spec = {"type": "file", "path": "/etc/x", "format": "json"}
    sink = {"kind": "Sink", "metadata": {"name": "reaching"}, "spec": spec}
    assert told(api.client.post("/sinks", json=sink)) == [("path_not_allowed", "spec.path")]
    found = told(api.client.post("/bundle", json={"documents": [sink]}))
    assert found == [("path_not_allowed", "documents[0].spec.path")]


@pytest.mark.slow
def test_test_runs_and_connection_tests_reach_no_further(live: Api) -> None:
    steps = [{"type": "sql", "query": "SELECT '${PATH}' AS p FROM input"}]
    source = {"type": "http", "schema": "id BIGINT"}
    body = {"document": pipeline("tried", source=source, processors=steps), "events": [{"id": 1}]}
    tried = live.client.post("/test", json=body).json()
    assert [each["code"] for each in tried["errors"]] == ["variable_not_allowed"]
    lookup = {"file": {"path": "/etc/passwd", "format": "csv"}, "on": {"id": "id"}, "columns": "x STRING"}
    steps = [{"type": "lookup", **lookup}]
    body["document"] = pipeline("tried", source=source, processors=steps)
    tried = live.client.post("/test", json=body).json()
    assert [each["code"] for each in tried["errors"]] == ["path_not_allowed"]

    def checked(kind: str, role: str, **spec: Any) -> list[str]:
        answer = live.client.post(f"/connectors/{kind}/check", json={"role": role, "spec": spec})
        return [problem["code"] for problem in answer.json()["problems"]]

    assert checked("file", "source", path="/etc", format="text") == ["path_not_allowed"]
    assert checked("http", "sink", url=METADATA) == ["address_not_allowed"]
    assert checked("http_poll", "source", url=METADATA, format="text") == ["address_not_allowed"]
    assert checked("sql", "sink", url="postgresql://u@169.254.169.254/d", table="t") == [
        "address_not_allowed"
    ]
    assert checked("file", "source", path="${HOME}", format="text") == ["variable_not_allowed"]
