"""Bodies of every form, and requests that are meant to hurt."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.api.kit import Api, codes, pipeline, stream

YAML_STREAM = "kind: Stream\nmetadata:\n  name: Orders raw\nspec:\n  storage: local\n"


@pytest.mark.parametrize("content_type", ["application/yaml", "application/json", "text/plain", ""])
@pytest.mark.parametrize("text", [YAML_STREAM, json.dumps(stream("Orders raw", storage="local"))])
def test_the_content_decides(client: httpx.Client, content_type: str, text: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    created = client.post("/streams", content=text, headers=headers)
    assert created.status_code == 201
    assert created.json()["spec"] == {"storage": "local"}


@pytest.mark.parametrize("body", ["", "   \n", "# nothing\n", "null"])
@pytest.mark.parametrize("path", ["/streams", "/validate", "/bundle", "/bundle?mode=replace"])
def test_an_empty_body(client: httpx.Client, path: str, body: str) -> None:
    refused = client.post(path, content=body)
    assert (refused.status_code, codes(refused)) == (400, ["empty_body"])


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\x00",
        b"\xff\xfe\x00",
        b'{"metadata": {"name": "\xc3\x28"}}',
        b'{"metadata": {"name": "\\ud800"}}',
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b"- " * 50_000,
        b"a: &a [*a]",
        b"metadata: {name: x}\nmetadata: {name: y}",
        b'{"spec": {"x": ' + b"9" * 5000 + b"}}",
        b'{"spec": {"x": 1e400}, "y": 99999999999999999999}',
        b"spec: {rate: .nan}",
        b"!!python/object/apply:os.system [ls]",
        b"a: 1\n---\nb: 2\n",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_unreadable_bodies(client: httpx.Client, method: str, body: bytes) -> None:
    path = "/streams" if method == "POST" else "/streams/orders"
    refused = client.request(method, path, content=body)
    assert refused.status_code == 400, refused.text
    assert codes(refused)[0] in ("not_yaml", "several_documents")


@pytest.mark.parametrize(
    "body",
    [
        "true",
        "17",
        '"text"',
        "[]",
        "{}",
        '{"kind": 3}',
        '{"kind": ["Pipeline"], "metadata": {"name": "x"}}',
        '{"kind": "Nothing"}',
        '{"metadata": "x"}',
        '{"metadata": {"name": 3}}',
        '{"metadata": {"name": null}}',
        '{"metadata": {"name": ""}}',
        '{"metadata": {"name": "a/b"}}',
        '{"metadata": {"name": "a\\u0000b"}}',
        '{"metadata": {"name": "späne!"}}',
        '{"metadata": {"name": "../../etc"}}',
        '{"metadata": {"name": "%s"}}' % ("x" * 129),
        '{"metadata": {"name": "x", "labels": {"a": 1}}}',
        '{"metadata": {"name": "x", "labels": []}}',
        '{"metadata": {"name": "x"}, "status": "running"}',
        '{"metadata": {"name": "x"}, "status": {"a": 1}}',
        '{"metadata": {"name": "x"}, "status": ["paused"]}',
        '{"metadata": {"name": "x"}, "apiVersion": 3}',
        '{"metadata": {"name": "x"}, "spec": []}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": {"a": 1}, "source": []}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [[]], "source": {"type": ["file"]}}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [{"ref": {}}], "source": {"ref": 1}}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [{"ref": "a/\\u0000"}], "source": {"ref": ""}}}',
        '{"metadata": {"name": "x"}, "spec": {"processors": [{"type": "sql"}, 1], "tasks": [{}]}}',
        '{"metadata": {"name": "x"}, "spec": {"processors": [{"id": {}}, {"id": []}]}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [{"id": {}}, {"type": {}}]}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [{}], "commit_policy": {"mode": {}, "quorum": "x"}}}',
        '{"metadata": {"name": "x"}, "spec": {"sinks": [1, 2], "restart": {"backoff_ms": true}}}',
    ],
)
@pytest.mark.parametrize("place", ["pipelines", "streams", "sources", "tasks", "sinks"])
def test_wrong_types_are_told_and_never_break(client: httpx.Client, place: str, body: str) -> None:
    refused = client.post(f"/{place}", content=body)
    assert refused.status_code == 422, refused.text
    codes(refused)
    judged = client.post("/validate", content=body)
    assert judged.status_code == 200, judged.text
    assert judged.json()["valid"] is (body == "[]")


@pytest.mark.parametrize(
    "patch",
    ["true", "[1]", '"x"', '{"kind": "Sink"}', '{"metadata": {"name": "other"}}', '{"metadata": null}'],
)
def test_patches_that_make_no_sense(client: httpx.Client, patch: str) -> None:
    client.post("/pipelines", json=pipeline("orders"))
    refused = client.patch("/pipelines/orders", content=patch)
    assert refused.status_code == 422, refused.text
    assert client.get("/pipelines/orders").json()["revision"] == 1


@pytest.mark.parametrize("path", ["/streams", "/validate", "/bundle"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large(client: httpx.Client, path: str, chunked: bool) -> None:
    piece = b"#" * 1024 * 1024
    content = (piece for _ in range(11)) if chunked else piece * 11
    try:
        refused = client.post(path, content=content)
    except httpx.WriteError:
        return  # the server has answered and closed before all was sent
    assert (refused.status_code, codes(refused)) == (413, ["body_too_large"])


@pytest.mark.parametrize(
    "name",
    [
        "a%2Fb",
        "..%2F..%2Fetc",
        "%00",
        "%ff",
        "sp%C3%A4ne",
        "%F0%9F%98%80",
        "x" * 200,
        "%25",
        "a%0Ab",
        "%E2%80%AE",
        "'; drop table documents; --",
    ],
)
def test_strange_names_are_not_found(client: httpx.Client, name: str) -> None:
    for method, path in [
        ("GET", f"/pipelines/{name}"),
        ("POST", f"/pipelines/{name}/pause"),
        ("GET", f"/streams/{name}/diff"),
        ("DELETE", f"/sinks/{name}"),
    ]:
        refused = client.request(method, path)
        assert refused.status_code in (404, 422), (path, refused.text)
        codes(refused)


@pytest.mark.parametrize("search", ["%", "_", "\\", "'", "\x00", "😀", "a" * 5000])
def test_strange_searches_find_nothing(client: httpx.Client, search: str) -> None:
    client.post("/streams", json=stream("orders"))
    found = client.get("/streams", params={"search": search, "label": f"{search}={search}"})
    assert (found.status_code, found.json()["total"]) == (200, 0)


def test_text_of_all_kinds_is_kept(client: httpx.Client) -> None:
    body = stream("orders")
    body["metadata"]["description"] = text = "nul \x00, line\u2028, 😀, ‮, \ufeff, </script>"
    assert client.post("/streams", json=body).status_code == 201
    assert client.get("/streams/orders").json()["metadata"]["description"] == text
    assert client.get("/bundle").json()["documents"][0]["metadata"]["description"] == text
    exported = client.get("/bundle?format=yaml")
    assert client.post("/bundle?dry_run=true", content=exported.content).json()["changes"][0]["action"] == (
        "unchanged"
    )


def test_clients_in_parallel(api: Api) -> None:
    def write(i: int) -> int:
        return api.client.post("/streams", json=stream(f"s{i % 10}")).status_code

    def patch(i: int) -> int:
        return api.client.patch("/streams/s0", json={"buffer": {"max_events": i + 1}}).status_code

    with ThreadPoolExecutor(20) as pool:
        written = list(pool.map(write, range(40)))
        patched = list(pool.map(patch, range(20)))
    assert sorted(written) == [201] * 10 + [409] * 30
    assert set(patched) <= {200, 412}
    assert api.client.get("/streams/s0").json()["revision"] == 1 + patched.count(200)
