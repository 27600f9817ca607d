"""Secrets as documents: their values are sealed before anything is stored or answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from tests.api.kit import Api, codes, open_service

VALUE = "correct horse battery staple"


def secret(name: str = "db", **spec: Any) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name}, "spec": spec or {"value": VALUE}}


def sink(password: str) -> dict[str, Any]:
    spec = {"type": "sql", "url": "postgresql://127.0.0.1/x", "password": password, "table": "t"}
    return {"kind": "Sink", "metadata": {"name": "table"}, "spec": spec}


def test_a_value_is_sealed_and_never_answered(api: Api) -> None:
    created = api.client.post("/secrets", json=secret())
    assert created.status_code == 201, created.text
    spec = created.json()["spec"]
    assert spec.keys() == {"sealed"}
    answers = [
        created,
        api.client.get("/secrets"),
        api.client.get("/secrets/db"),
        api.client.get("/secrets/db/revisions"),
        api.client.get("/secrets/db/revisions/1"),
        api.client.patch("/secrets/db", json={"value": f"{VALUE}!"}),
        api.client.get("/secrets/db/diff"),
        api.client.post("/secrets/db/plan", json=secret(value=f"{VALUE}?")),
        api.client.post("/validate", json=secret()),
        api.client.get("/bundle"),
        api.client.post("/bundle", params={"dry_run": True}, json=[secret(value=f"{VALUE}??")]),
        api.client.post("/bundle", json=[secret(value=f"{VALUE}??")]),
        api.client.get("/audit"),
        api.client.post("/secrets", json=secret()),
        api.client.post("/secrets", json=secret("Wrong", value=VALUE, file="/x")),
        api.client.post("/secrets", json=secret("Wrong", value=[VALUE])),
        api.client.post("/streams", json=secret("Wrong")),
    ]
    assert [each.status_code for each in answers[-4:]] == [409, 422, 422, 422]
    assert all(each.status_code < 300 for each in answers[:-4]), [each.text for each in answers]
    assert not [each.url for each in answers if VALUE in each.text]
    home: Path = api.service.settings.home
    files = [path for path in home.rglob("*") if path.is_file()]
    assert home / "secrets.key" in files
    assert not [path for path in files if VALUE.encode() in path.read_bytes()]


def test_the_same_value_makes_no_new_revision(client: httpx.Client) -> None:
    assert client.post("/secrets", json=secret()).status_code == 201
    assert client.put("/secrets/db", json=secret()).json()["revision"] == 1
    (change,) = client.post("/bundle", json=[secret()]).json()["changes"]
    assert change["action"] == "unchanged"
    assert client.put("/secrets/db", json=secret(value="another one")).json()["revision"] == 2
    kept = client.get("/secrets/db").json()["spec"]
    assert client.put("/secrets/db", json=secret(**kept)).json()["revision"] == 2, "as it was exported"
    assert client.put("/secrets/db", json=secret(environment="PENSTOCK_VAR_X")).json()["revision"] == 3


def test_documents_that_use_a_secret_refer_to_it(client: httpx.Client) -> None:
    missing = client.post("/sinks", json=sink("${secret:db}"))
    assert (missing.status_code, codes(missing)) == (422, ["unknown_reference"])
    assert missing.json()["errors"][0]["path"] == "spec.password"
    assert client.post("/secrets", json=secret()).status_code == 201
    made = client.post("/sinks", json=sink("${secret:db}"))
    assert made.status_code == 201, made.text
    assert made.json()["spec"]["password"] == "${secret:db}"
    (referrer,) = client.get("/secrets/db").json()["referrers"]
    assert (referrer["kind"], referrer["id"]) == ("Sink", "table")
    kept = client.delete("/secrets/db")
    assert (kept.status_code, codes(kept)) == (409, ["referenced"])


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ({"type": "sql", "query": "SELECT '${secret:db}' AS x FROM input"}, "spec.processors[0].query"),
        ({"type": "javascript", "inline": "print('${secret:db}')"}, "spec.processors[0].inline"),
        ({"type": "filter", "where": "a = '${secret:db}'"}, "spec.processors[0].where"),
    ],
)
def test_steps_that_connect_to_nothing_get_no_secret(
    client: httpx.Client, step: dict[str, Any], path: str
) -> None:
    client.post("/secrets", json=secret())
    task = {"metadata": {"name": "t"}, "spec": {"processors": [step]}}
    refused = client.post("/tasks", json=task)
    assert (refused.status_code, codes(refused)) == (422, ["secret_not_allowed"])
    assert refused.json()["errors"][0]["path"] == path


def test_a_registry_that_servers_share_needs_a_key(tmp_path: Path, postgres_database: str) -> None:
    from penstock.errors import Unavailable

    with open_service(tmp_path, **{"registry.url": postgres_database}) as service:
        with pytest.raises(Unavailable, match="several servers"):
            service.create("Secret", secret())
        assert not (tmp_path / "secrets.key").exists()


def test_the_command_line_sets_values_without_showing_them(api: Api) -> None:
    def run(*words: str, given: str | None = None) -> str:
        result = CliRunner().invoke(app, ["secret", *words, "--server", api.url], input=given)
        assert result.exit_code == 0, result.output
        assert VALUE not in result.output
        return result.output

    assert "${secret:db}" in run("set", "db", given=f"{VALUE}\n")
    assert "unchanged" in run("set", "db", given=VALUE)
    assert "restarted" in run("set", "db", given=f"{VALUE}\nwith two lines\n")
    assert api.client.post("/sinks", json=sink("${secret:db}")).status_code == 201
    (row,) = [line for line in run("ls").splitlines() if line.startswith("db")]
    assert "registry" in row
    assert "sink/table" in row
    empty = CliRunner().invoke(app, ["secret", "set", "none", "--server", api.url], input="\n")
    assert empty.exit_code == 2
