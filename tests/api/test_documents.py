from __future__ import annotations

import httpx
import pytest

from tests.api.kit import codes, pipeline, stream

BODIES = {
    "pipelines": pipeline("Main Line"),
    "streams": stream("Main Line"),
    "sources": {"metadata": {"name": "Main Line"}, "spec": {"type": "generate"}},
    "tasks": {
        "metadata": {"name": "Main Line"},
        "spec": {"processors": [{"type": "filter", "where": "true"}]},
    },
    "sinks": {"metadata": {"name": "Main Line"}, "spec": {"type": "drop"}},
    "secrets": {"metadata": {"name": "Main Line"}, "spec": {"value": "a secret"}},
}


@pytest.mark.parametrize("place", BODIES)
def test_the_life_of_a_document(client: httpx.Client, place: str) -> None:
    created = client.post(f"/{place}", json=BODIES[place])
    assert created.status_code == 201, created.text
    assert created.headers["location"] == f"/{place}/Main%20Line"
    info = created.json()
    assert (info["name"], info["id"], info["revision"]) == ("Main Line", "main_line", 1)

    found = client.get(created.headers["location"])
    assert found.status_code == 200
    assert found.headers["etag"] == created.headers["etag"]
    assert client.get(f"/{place}/main_line").json() == found.json()

    patch = {"metadata": {"labels": {"team": "a"}}}
    patched = client.patch(f"/{place}/main_line", json=patch)
    assert patched.status_code == 200, patched.text
    assert patched.json()["metadata"] == {"name": "Main Line", "description": "", "labels": {"team": "a"}}
    assert patched.headers["etag"] != created.headers["etag"]

    replaced = client.put(f"/{place}/main_line", json=BODIES[place])
    assert (replaced.status_code, replaced.json()["revision"]) == (200, 3)

    page = client.get(f"/{place}").json()
    assert (page["total"], page["limit"], page["offset"]) == (1, 100, 0)
    assert page["items"][0]["name"] == "Main Line"

    assert client.delete(f"/{place}/main_line").status_code == 204
    gone = client.get(f"/{place}/main_line")
    assert (gone.status_code, codes(gone)) == (404, ["not_found"])


@pytest.mark.parametrize(("name", "made"), [("Aufträge", "auftrage"), ("注文 2", "zhuwen_2")])
def test_names_in_other_scripts(client: httpx.Client, name: str, made: str) -> None:
    created = client.post("/streams", json=stream(name))
    assert created.status_code == 201, created.text
    assert (created.json()["name"], created.json()["id"]) == (name, made)
    assert client.get(created.headers["location"]).json()["name"] == name
    assert client.get(f"/streams/{made}").json()["name"] == name

    sent = client.post(f"/streams/{name}/events", json={"id": 1})
    assert (sent.status_code, sent.json()["stream"]) == (200, made)

    reads = {"metadata": {"name": f"reads {name}"}, "spec": {"type": "stream", "stream": name}}
    assert client.post("/sources", json=reads).status_code == 201
    assert [each["name"] for each in client.get(f"/streams/{made}").json()["referrers"]] == [f"reads {name}"]
    taken = client.post("/streams", json=stream(made))
    assert (taken.status_code, codes(taken)) == (409, ["name_in_use"])


def test_a_pipeline_is_shown_as_pipe_info(client: httpx.Client) -> None:
    info = client.post("/pipelines", json=pipeline("orders")).json()
    assert set(info) == {
        *("name", "id", "status", "phase", "spec", "metadata", "revision", "worker", "error", "attempts"),
        *(
            "ops",
            "warnings",
            "created_at",
            "updated_at",
            "queue_position",
            "waits_for",
            "failed_attempts",
            "running_revision",
            "guarantee",
        ),
    }
    assert info["status"] == "paused"
    assert info["spec"]["source"] == {"type": "generate", "rate": 10}
    assert info["ops"]["input_events"] == 0


def test_a_document_is_shown_with_its_referrers(client: httpx.Client) -> None:
    client.post("/sinks", json={"metadata": {"name": "lake"}, "spec": {"type": "drop"}})
    client.post("/pipelines", json=pipeline("orders", sinks=[{"ref": "lake"}]))
    assert client.get("/sinks/lake").json()["referrers"] == [
        {"kind": "Pipeline", "id": "orders", "name": "orders", "path": "spec.sinks[0].ref"}
    ]
    refused = client.delete("/sinks/lake")
    assert (refused.status_code, codes(refused)) == (409, ["referenced"])
    assert "orders" in refused.json()["message"]


def test_a_name_that_is_taken(client: httpx.Client) -> None:
    client.post("/streams", json=stream("Orders Raw"))
    again = client.post("/streams", json=stream("orders raw"))
    assert (again.status_code, codes(again)) == (409, ["name_in_use"])


def test_every_problem_at_once(client: httpx.Client) -> None:
    broken = {"metadata": {"nane": "x"}, "spec": {"source": {"type": "generator"}, "sinks": []}, "extra": 1}
    refused = client.post("/pipelines", json=broken)
    assert refused.status_code == 422
    problems = {problem["path"]: problem for problem in refused.json()["errors"]}
    assert set(problems) == {"metadata.name", "metadata.nane", "spec.source.type", "spec.sinks", "extra"}
    assert problems["spec.source.type"]["hint"] == "did you mean 'generate'?"


def test_an_invalid_pipeline_can_be_kept_paused(client: httpx.Client) -> None:
    kept = client.post("/pipelines", json=pipeline("draft", sinks=[{"type": "nowhere"}]))
    assert kept.status_code == 201
    assert [warning["code"] for warning in kept.json()["warnings"]] == ["unknown_type"]
    error = client.get("/pipelines/draft").json()["error"]
    assert (error["code"], [problem["path"] for problem in error["problems"]]) == (
        "unknown_type",
        ["spec.sinks[0].type"],
    )
    refused = client.post("/pipelines", json=pipeline("draft2", "active", sinks=[{"type": "nowhere"}]))
    assert (refused.status_code, codes(refused)) == (422, ["unknown_type"])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
def test_a_change_for_a_stale_revision_changes_nothing(client: httpx.Client, method: str) -> None:
    etag = client.post("/streams", json=stream("orders")).headers["etag"]
    current = client.patch("/streams/orders", json={"storage": "sqlite"}).headers["etag"]
    path = "/streams/orders/rollback" if method == "POST" else "/streams/orders"
    body = {"PUT": stream("orders"), "PATCH": {"storage": "local"}, "POST": {"revision": 1}, "DELETE": None}

    stale = client.request(method, path, json=body[method], headers={"If-Match": etag})
    assert (stale.status_code, codes(stale)) == (412, ["stale_revision"])
    assert client.get("/streams/orders").headers["etag"] == current

    fresh = client.request(method, path, json=body[method], headers={"If-Match": current})
    assert fresh.status_code in (200, 204), fresh.text


def test_if_match_of_a_document_that_was_created_anew(client: httpx.Client) -> None:
    etag = client.post("/streams", json=stream("orders")).headers["etag"]
    client.delete("/streams/orders")
    client.post("/streams", json=stream("orders"))
    assert client.delete("/streams/orders", headers={"If-Match": etag}).status_code == 412
    assert client.delete("/streams/orders", headers={"If-Match": "*"}).status_code == 204


def test_the_wrong_kind(client: httpx.Client) -> None:
    refused = client.post("/sinks", json=stream("orders"))
    assert (refused.status_code, codes(refused)) == (422, ["wrong_kind"])


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_what_is_not_there(client: httpx.Client, method: str) -> None:
    client.post("/streams", json=stream("orders"))
    body = {"PUT": stream("order"), "PATCH": {"storage": "local"}}.get(method)
    missing = client.request(method, "/streams/order", json=body)
    assert (missing.status_code, codes(missing)) == (404, ["not_found"])
    assert missing.json()["hint"] == "did you mean 'orders'?"


def test_lists_are_filtered_sorted_and_cut(client: httpx.Client) -> None:
    for name, status, labels in [
        ("alpha", "paused", {"team": "a", "tier": "1"}),
        ("beta", "stopped", {"team": "a"}),
        ("gamma", "paused", {"team": "b"}),
    ]:
        body = pipeline(name, status)
        body["metadata"]["labels"] = labels
        assert client.post("/pipelines", json=body).status_code == 201

    def names(**query: object) -> list[str]:
        page = client.get("/pipelines", params=query).json()
        return [item["name"] for item in page["items"]]

    assert names() == ["alpha", "beta", "gamma"]
    assert names(search="ET") == ["beta"]
    assert names(status="paused") == ["alpha", "gamma"]
    assert names(label=["team=a", "tier"]) == ["alpha"]
    assert names(sort="-name", limit=2) == ["gamma", "beta"]
    assert names(offset=2) == ["gamma"]
    assert client.get("/pipelines?limit=1").json()["total"] == 3


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_parameter"),
        ("limit=1001", "invalid_parameter"),
        ("limit=x", "invalid_parameter"),
        ("offset=-1", "invalid_parameter"),
        ("offset=99999999999999999999", "invalid_parameter"),
        ("status=asleep", "invalid_parameter"),
        ("lable=a", "unknown_parameter"),
        ("sort=colour", "unknown_sort"),
    ],
)
def test_parameters_that_make_no_sense(client: httpx.Client, query: str, code: str) -> None:
    refused = client.get(f"/pipelines?{query}")
    assert (refused.status_code, codes(refused)) == (422, [code])


def test_revisions_can_be_listed_compared_and_restored(client: httpx.Client) -> None:
    client.post("/streams", json=stream("orders"))
    client.patch("/streams/orders", json={"storage": "sqlite"})
    listed = client.get("/streams/orders/revisions").json()
    assert [(r["revision"], r["origin"]) for r in listed] == [(2, "patch"), (1, "create")]
    assert client.get("/streams/orders/revisions/1").json()["document"]["spec"] == {}

    entry = {"path": "spec.storage", "op": "add", "before": None, "after": "sqlite"}
    newest = client.get("/streams/orders/diff").json()
    assert newest["entries"] == [entry]
    assert "+  storage: sqlite" in newest["text"]
    backwards = client.get("/streams/orders/diff?from=2&to=1").json()["entries"]
    assert [e["op"] for e in backwards] == ["remove"]

    restored = client.post("/streams/orders/rollback", json={"revision": 1})
    assert (restored.status_code, restored.json()["revision"], restored.json()["spec"]) == (200, 3, {})
    assert client.get("/streams/orders/revisions/3").json()["origin"] == "rollback to 1"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "revisions/9", None, 404, "not_found"),
        ("GET", "revisions/0", None, 422, "invalid_parameter"),
        ("GET", "revisions/x", None, 422, "invalid_parameter"),
        ("GET", f"revisions/{10**30}", None, 404, "not_found"),
        ("GET", "diff?from=5", None, 404, "not_found"),
        ("GET", "diff?from=0", None, 422, "invalid_parameter"),
        ("POST", "rollback", {"revision": 9}, 404, "not_found"),
        ("POST", "rollback", {"revision": "1"}, 422, "wrong_type"),
        ("POST", "rollback", {}, 422, "missing_field"),
        ("POST", "rollback", [1], 422, "wrong_type"),
    ],
)
def test_revisions_that_make_no_sense(
    client: httpx.Client, method: str, path: str, body: object, status: int, code: str
) -> None:
    client.post("/streams", json=stream("orders"))
    refused = client.request(method, f"/streams/orders/{path}", json=body)
    assert (refused.status_code, codes(refused)) == (status, [code])
