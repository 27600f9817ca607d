from __future__ import annotations

import httpx
import pytest
import yaml

from tests.api.kit import codes, pipeline, stream

SINK = {"kind": "Sink", "metadata": {"name": "lake"}, "spec": {"type": "drop"}}
BUNDLE = {
    "apiVersion": "penstock/v1",
    "kind": "Bundle",
    "documents": [SINK, pipeline("orders", sinks=[{"ref": "lake"}])],
}


def actions(response: httpx.Response) -> list[tuple[str, str]]:
    assert response.status_code == 200, response.text
    return [(change["action"], change["id"]) for change in response.json()["changes"]]


def test_a_round_trip(client: httpx.Client) -> None:
    imported = client.post("/bundle", json=BUNDLE)
    assert actions(imported) == [("create", "lake"), ("create", "orders")]
    assert imported.json()["applied"] is True

    as_json, as_yaml = client.get("/bundle"), client.get("/bundle?format=yaml")
    accepted = client.get("/bundle", headers={"Accept": "application/yaml"})
    assert as_json.headers["content-type"] == "application/json"
    assert as_yaml.headers["content-type"] == accepted.headers["content-type"] == "application/yaml"
    assert as_json.headers["content-disposition"] == 'attachment; filename="penstock-bundle.json"'
    assert as_yaml.headers["content-disposition"] == 'attachment; filename="penstock-bundle.yaml"'
    assert as_json.json() == yaml.safe_load(as_yaml.text) == yaml.safe_load(accepted.text)

    for text in (as_json.content, as_yaml.content):
        again = client.post("/bundle?mode=replace", content=text)
        assert {action for action, _ in actions(again)} == {"unchanged"}


def test_the_version_of_the_format_need_not_be_named(client: httpx.Client) -> None:
    assert client.post("/streams", json=stream("made")).status_code == 201
    assert "apiVersion" not in stream("made")
    assert actions(client.post("/bundle", json=[stream("made")])) == [("unchanged", "made")]
    client.post("/bundle", json=[SINK])
    answer = client.patch("/sinks/lake", json={"metadata": {"description": "other"}})
    assert answer.status_code == 200
    changed = client.get("/sinks/lake/diff").json()["entries"]
    assert [entry["path"] for entry in changed] == ["metadata.description"]


def test_a_dry_run_changes_nothing(client: httpx.Client) -> None:
    client.post("/streams", json=stream("old"))
    told = client.post("/bundle?mode=replace&dry_run=true", json=BUNDLE)
    assert actions(told) == [("create", "lake"), ("create", "orders"), ("delete", "old")]
    assert told.json()["applied"] is False
    assert client.get("/pipelines").json()["total"] == 0
    assert client.get("/streams").json()["total"] == 1


def test_merge_keeps_and_replace_deletes(client: httpx.Client) -> None:
    client.post("/streams", json=stream("old"))
    client.post("/bundle", json=BUNDLE)
    assert client.get("/streams/old").status_code == 200
    client.post("/bundle?mode=replace", json=BUNDLE)
    assert client.get("/streams/old").status_code == 404
    emptied = client.post("/bundle?mode=replace", json={"kind": "Bundle", "documents": []})
    assert actions(emptied) == [("delete", "lake"), ("delete", "orders")]


def test_changes_are_shown_field_by_field(client: httpx.Client) -> None:
    client.post("/bundle", json=BUNDLE)
    changed = client.post("/bundle?dry_run=1", json=[{**SINK, "spec": {"type": "console"}}])
    assert changed.json()["changes"] == [
        {
            "action": "update",
            "kind": "Sink",
            "id": "lake",
            "name": "lake",
            "diff": [{"path": "spec.type", "op": "replace", "before": "drop", "after": "console"}],
        }
    ]


def test_all_or_nothing(client: httpx.Client) -> None:
    broken = {"kind": "Bundle", "documents": [SINK, stream("x", bad=1), {"kind": "Nothing"}]}
    refused = client.post("/bundle", json=broken)
    assert (refused.status_code, codes(refused)) == (422, ["unknown_field", "unknown_kind"])
    assert [problem["path"] for problem in refused.json()["errors"]] == [
        "documents[1].spec.bad",
        "documents[2].kind",
    ]
    assert client.get("/sinks").json()["total"] == 0


@pytest.mark.parametrize("query", ["mode=add", "dry_run=perhaps"])
def test_parameters_that_make_no_sense(client: httpx.Client, query: str) -> None:
    refused = client.post(f"/bundle?{query}", json=BUNDLE)
    assert (refused.status_code, codes(refused)) == (422, ["invalid_parameter"])
    assert client.get("/bundle?format=toml").status_code == 422


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (yaml.safe_dump(SINK), 1),
        (yaml.safe_dump([SINK, stream("x")]), 2),
        (yaml.safe_dump(BUNDLE), 2),
        (yaml.safe_dump_all([SINK, stream("x"), stream("y")]), 3),
    ],
)
def test_validation_takes_every_form_and_saves_nothing(client: httpx.Client, body: str, count: int) -> None:
    judged = client.post("/validate", content=body).json()
    assert judged["valid"] is True
    assert [each["valid"] for each in judged["documents"]] == [True] * count
    assert client.get("/bundle").json()["documents"] == []


def test_validation_tells_every_problem_of_every_document(client: httpx.Client) -> None:
    judged = client.post("/validate", json=[SINK, stream("x", bad=1, wal=3), 17])
    assert judged.status_code == 200
    body = judged.json()
    assert body["valid"] is False
    assert [[problem["code"] for problem in each["errors"]] for each in body["documents"]] == [
        [],
        ["wrong_type", "unknown_field"],
        ["not_a_document"],
    ]
