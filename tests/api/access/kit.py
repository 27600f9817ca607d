"""A service with users of every role, and clients for each of them."""

from __future__ import annotations

from typing import Any

import httpx
from fastapi import FastAPI

from penstock.api.app import create_app
from penstock.control.access.access import Access
from penstock.control.documents.service import Service

PASSWORD = "correct horse"
ROLES = ("viewer", "operator", "editor", "admin")


def app_with_users(service: Service) -> FastAPI:
    """An app with a user of each role, whose name is the role's. Authentication is on."""
    app = create_app(service)
    access: Access = app.state.access
    for role in reversed(ROLES):
        access.users.add(role, role, PASSWORD)
    access.refresh()
    return app


def asgi(app: FastAPI, token: str | None = None, **options: Any) -> httpx.AsyncClient:
    """A client that speaks with an app in this process."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8080", headers=headers, **options
    )


def token_of(app: FastAPI, role: str, **options: Any) -> str:
    """A token of the user of a role, or one for a program."""
    access: Access = app.state.access
    user = role if role in ROLES else None
    return access.tokens.make("test", role, user=user, **options)[1]


def logged_in(client: httpx.Client, name: str) -> httpx.Client:
    """The client with a session of a user, which sends what is needed to change something."""
    answer = client.post("/session", json={"name": name, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    client.headers["X-CSRF-Token"] = answer.json()["csrf"]
    return client
