"""Log-ins, sessions and what protects them, against a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from penstock.api.access import guard
from penstock.api.access.cookies import COOKIE
from penstock.api.app import create_app
from penstock.control.access import access as access_module
from penstock.control.access.access import Access
from tests.api.access.kit import PASSWORD, logged_in
from tests.api.kit import Api, codes, open_service, running, stream

TOKEN = {"name": "ci", "role": "viewer"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Api]:
    """A server with an admin and a viewer."""
    with open_service(tmp_path) as service:
        access = Access(service.settings, service.registry)
        access.users.add("admin", "admin", PASSWORD)
        access.users.add("viewer", "viewer", PASSWORD)
        with running(service) as found:
            yield found


def other_client(server: Api) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=60, trust_env=False)


def test_without_users_everybody_is_the_local_admin(tmp_path: Path) -> None:
    with open_service(tmp_path) as service, running(service) as server:
        client = server.client
        assert client.get("/session").json() == {
            "authentication": "off",
            "user": {"name": "local", "role": "admin", "via": "local"},
            "csrf": None,
            "oidc": None,
            "setup": False,
        }
        assert (
            client.post("/users", json={"name": "x", "role": "viewer", "password": PASSWORD}).status_code
            == 409
        )
        first = client.post("/users", json={"name": "ann", "role": "admin", "password": PASSWORD})
        assert first.status_code == 201
        assert client.get("/streams").status_code == 401, "from now on people have to log in"
        assert client.get("/session").json()["user"] is None


def test_a_session_has_a_cookie_and_a_csrf_token(server: Api) -> None:
    client = server.client
    refused = client.get("/pipelines")
    assert (refused.status_code, codes(refused)) == (401, ["unauthorised"])
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    answer = client.post("/session", json={"name": "admin", "password": PASSWORD})
    assert answer.json()["user"] == {"name": "admin", "role": "admin", "via": "password"}
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "Secure" not in cookie, "this server has no TLS"
    csrf = answer.json()["csrf"]
    assert client.get("/session").json()["csrf"] == csrf
    assert client.get("/pipelines").status_code == 200
    for headers in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": ""}):
        forged = client.post("/tokens", json=TOKEN, headers=headers)
        assert (forged.status_code, codes(forged)) == (403, ["csrf"])
    headers = {"X-CSRF-Token": csrf}
    assert client.post("/tokens", json=TOKEN, headers=headers).status_code == 201
    assert client.delete("/session").status_code == 403
    assert client.delete("/session", headers=headers).status_code == 204
    assert client.get("/pipelines").status_code == 401


def test_a_log_in_never_takes_up_a_session_that_somebody_else_may_know(server: Api) -> None:
    planted = "planted-by-somebody-else"
    client = other_client(server)
    first = client.post(
        "/session", json={"name": "admin", "password": PASSWORD}, headers={"Cookie": f"{COOKIE}={planted}"}
    )
    assert first.status_code == 200
    secret = first.cookies[COOKIE]
    assert secret != planted
    again = client.post(
        "/session", json={"name": "admin", "password": PASSWORD}, headers={"Cookie": f"{COOKIE}={secret}"}
    )
    assert again.cookies[COOKIE] != secret
    stolen = httpx.get(f"{server.url}/pipelines", headers={"Cookie": f"{COOKIE}={secret}"}, trust_env=False)
    assert stolen.status_code == 401, "the session of before has ended"


def test_a_new_password_ends_the_other_sessions(server: Api) -> None:
    one, other = logged_in(other_client(server), "viewer"), logged_in(other_client(server), "viewer")
    wrong = one.put("/session/password", json={"current": "not it at all", "new": "another horse"})
    assert (wrong.status_code, codes(wrong)) == (401, ["wrong_login"])
    changed = one.put("/session/password", json={"current": PASSWORD, "new": "another horse"})
    assert changed.status_code == 204
    assert one.get("/pipelines").status_code == 200
    assert other.get("/pipelines").status_code == 401


def test_failed_log_ins_have_to_wait(server: Api) -> None:
    client = server.client
    for _ in range(5):
        wrong = client.post("/session", json={"name": "viewer", "password": "wrong password"})
        assert (wrong.status_code, codes(wrong)) == (401, ["wrong_login"])
    locked = client.post("/session", json={"name": "viewer", "password": PASSWORD})
    assert (locked.status_code, codes(locked)) == (429, ["too_many_attempts"])
    assert 1 <= int(locked.headers["Retry-After"]) <= 30
    assert logged_in(client, "admin"), "another user is not locked"
    entries = client.get("/audit", params={"action": "session.login", "user": "viewer"}).json()["entries"]
    assert [entry["status"] for entry in entries] == [429] + [401] * 5
    assert {entry["address"] for entry in entries} == {"127.0.0.1"}
    unknown = client.post("/session", json={"name": "nobody", "password": PASSWORD})
    assert (unknown.status_code, codes(unknown)) == (401, ["wrong_login"])


def test_an_address_that_a_client_only_claims_is_not_believed(server: Api) -> None:
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    wrong = server.client.post(
        "/session", json={"name": "viewer", "password": "wrong password"}, headers=headers
    )
    assert wrong.status_code == 401
    right = server.client.post("/session", json={"name": "admin", "password": PASSWORD}, headers=headers)
    assert "Secure" not in right.headers["Set-Cookie"]
    entries = server.client.get("/audit", params={"user": "viewer"}).json()["entries"]
    assert [entry["address"] for entry in entries] == ["127.0.0.1"]


def test_what_follows_ends_soon_after_its_session(server: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "WATCH_S", 0.2)
    client = logged_in(server.client, "viewer")
    with other_client(server) as watching:
        watching.cookies = client.cookies
        with watching.stream("GET", "/events") as answer:
            assert answer.status_code == 200
            assert client.delete("/session").status_code == 204
            began = time.monotonic()
            for _ in answer.iter_bytes():
                assert time.monotonic() - began < 20
    assert time.monotonic() - began < 20


def test_the_first_admin_is_made_by_a_link_that_works_once(tmp_path: Path) -> None:
    with open_service(tmp_path, **{"auth.mode": "on"}) as service:
        app = create_app(service)
        secret = app.state.access.new_setup_secret()
        client = TestClient(app, base_url="http://127.0.0.1:8080")
        assert client.get("/session").json()["setup"] is True
        assert client.get("/streams").status_code == 401
        body = {"secret": "wrong", "name": "ann", "password": PASSWORD}
        assert client.post("/session/setup", json=body).json()["code"] == "wrong_secret"
        body["secret"] = secret
        made = client.post("/session/setup", json=body)
        assert made.json()["user"] == {"name": "ann", "role": "admin", "via": "password"}
        assert made.json()["setup"] is False
        assert client.post("/session/setup", json=body).status_code in (401, 403)


def test_tokens_expire_are_revoked_and_never_exceed_their_user(
    server: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "CACHED_S", 0.0)
    admin = logged_in(server.client, "admin")
    tokens = Access(server.service.settings, server.service.registry).tokens

    def status(token: str, method: str = "GET", path: str = "/streams") -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return other_client(server).request(method, path, headers=headers).status_code

    made = admin.post("/tokens", json={"name": "ci", "role": "editor", "expires_in_days": 1}).json()
    assert status(made["secret"]) == 200
    listed = admin.get("/tokens").json()["tokens"]
    assert [(each["name"], each["user"]) for each in listed] == [("ci", "admin")]
    assert listed[0]["last_used_at"] is not None
    assert "secret" not in listed[0]
    assert status(made["secret"] + "x") == status("x.y") == 401
    assert admin.delete(f"/tokens/{made['id']}").status_code == 204
    assert status(made["secret"]) == 401
    ended = tokens.make("old", "admin", user="admin", expires_at=datetime.now(UTC))[1]
    assert status(ended) == 401
    of_viewer = tokens.make("big", "admin", user="viewer")[1]
    assert status(of_viewer) == 200
    assert status(of_viewer, path="/users") == 403, "its user is a viewer"
    assert admin.patch("/users/viewer", json={"disabled": True}).status_code == 200
    assert status(of_viewer) == 401
    for body in ({"role": "ingest"}, {"role": "viewer", "source": "x"}):
        assert admin.post("/tokens", json={"name": "x", **body}).status_code == 422


def test_a_viewer_gets_no_more_than_a_viewer(server: Api) -> None:
    viewer = logged_in(server.client, "viewer")
    for role in ("operator", "admin", "ingest", "worker"):
        body = {"name": "x", "role": role, **({"source": "s"} if role == "ingest" else {})}
        refused = viewer.post("/tokens", json=body)
        assert (refused.status_code, codes(refused)) == (403, ["forbidden"])
    refused = viewer.post("/streams", json=stream("raw"))
    assert refused.json()["message"] == "POST /streams needs the role editor; you have viewer"
    ready = httpx.get(f"{server.url}/readyz", trust_env=False, timeout=60).json()
    assert ready == {
        "ready": False, "problems": [], "startup": [],
        "pipelines": {}, "sources": {}, "tasks": {}, "sinks": {},
    }  # fmt: skip
    assert viewer.get("/readyz").json()["problems"]


def test_the_last_admin_stays(server: Api) -> None:
    admin = logged_in(server.client, "admin")
    for change in ({"role": "viewer"}, {"disabled": True}):
        refused = admin.patch("/users/admin", json=change)
        assert (refused.status_code, codes(refused)) == (409, ["last_admin"])
    assert codes(admin.delete("/users/admin")) == ["last_admin"]
    assert admin.patch("/users/viewer", json={"role": "admin"}).status_code == 200
    assert admin.delete("/users/admin").status_code == 204
    assert admin.get("/users").status_code == 401, "its session is gone with it"
