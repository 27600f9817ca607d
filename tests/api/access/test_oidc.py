"""Log-in with an OpenID Connect provider that really signs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from penstock.api.access.cookies import COOKIE
from penstock.api.app import create_app
from tests.api.access.provider import CLIENT, SECRET, Provider, new_key, running_provider
from tests.api.kit import open_service

ROLES = {"ops": "operator", "everybody": "viewer"}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with running_provider() as found:
        yield found


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.claims, running.signing_key = {"preferred_username": "ann", "groups": ["everybody", "ops"]}, None
    return running


@pytest.fixture
def client(provider: Provider, tmp_path: Path) -> Iterator[TestClient]:
    settings: dict[str, Any] = {
        "issuer": provider.url,
        "client_id": CLIENT,
        "client_secret": SECRET,
        "label": "Company",
        "role_claim": "groups",
        "roles": ROLES,
    }
    with open_service(
        tmp_path, **{f"auth.oidc.{name}": value for name, value in settings.items()}
    ) as service:
        yield TestClient(create_app(service), base_url="http://127.0.0.1:8080", follow_redirects=False)


def come_back(client: TestClient, change: Callable[[str], str] = lambda url: url) -> httpx.Response:
    """Log in at the provider, and return from there."""
    away = client.get("/session/oidc")
    assert away.status_code == 302
    back = httpx.get(away.headers["Location"], trust_env=False).headers["Location"]
    return client.get(change(back))


def test_a_user_logs_in_with_the_role_of_a_claim(client: TestClient, provider: Provider) -> None:
    shown = client.get("/session").json()
    assert (shown["authentication"], shown["oidc"]) == ("on", {"label": "Company"})
    back = come_back(client)
    assert (back.status_code, back.headers["Location"]) == (302, "/ui/")
    user = client.get("/session").json()["user"]
    assert user == {"name": "ann", "role": "operator", "via": "oidc"}
    assert client.get("/streams").status_code == 200
    provider.claims["groups"] = "everybody"
    come_back(client)
    assert client.get("/session").json()["user"]["role"] == "viewer", "the provider decides at each log-in"
    provider.claims["groups"] = []
    refused = come_back(client)
    assert refused.headers["Location"] == "/ui/login?error=no_role"
    entries = client.app.state.access.audit.entries(action="session.login")  # type: ignore[attr-defined]
    assert [(entry.via, entry.status) for entry in entries] == [("oidc", 403), ("oidc", 302), ("oidc", 302)]


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "somebody else"},
        {"iss": "http://127.0.0.1:1"},
        {"exp": int(time.time()) - 600},
        {"nonce": "of another log-in"},
        {"azp": "somebody else"},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_an_id_token_that_is_not_for_this_log_in_is_refused(
    client: TestClient, provider: Provider, claims: dict[str, Any]
) -> None:
    provider.claims |= claims
    refused = come_back(client)
    assert refused.headers["Location"] == "/ui/login?error=oidc_failed"
    assert COOKIE not in client.cookies


def test_a_signature_of_somebody_else_is_refused(client: TestClient, provider: Provider) -> None:
    provider.signing_key = new_key()
    assert come_back(client).headers["Location"] == "/ui/login?error=oidc_failed"


def test_a_log_in_ends_in_the_browser_in_which_it_began(client: TestClient) -> None:
    changed = come_back(client, lambda url: url.replace("state=", "state=x"))
    assert changed.headers["Location"] == "/ui/login?error=oidc_state"
    denied = client.get("/session/oidc/callback", params={"error": "access_denied", "state": "x"})
    assert denied.headers["Location"] == "/ui/login?error=oidc_state"


def test_a_code_is_good_for_nothing_without_its_verifier(client: TestClient) -> None:
    away = client.get("/session/oidc").headers["Location"]
    back = httpx.get(away, trust_env=False).headers["Location"]
    state = httpx.URL(away).params["state"]
    client.cookies.set("penstock_oidc", f"{state}.nonce.another-verifier", domain="127.0.0.1")
    client.cookies.delete("penstock_oidc", path="/session/oidc")
    assert client.get(back).headers["Location"] == "/ui/login?error=oidc_failed"
