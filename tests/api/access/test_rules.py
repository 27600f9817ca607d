"""Each route lets those through who have its role, and nobody else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from penstock.api.access.rules import Rules, declared_rules
from penstock.api.sse import EventStream
from penstock.control.access.roles import permits
from penstock.control.documents.service import Service
from tests.api.access.kit import ROLES, app_with_users, asgi, token_of

CALLERS = (None, *ROLES, "ingest", "worker")
SOURCE = "none"


@pytest.fixture
def app(service: Service) -> FastAPI:
    return app_with_users(service)


def routes(app: FastAPI) -> Iterator[tuple[str, str, str]]:
    """Method and path of every route, with values that lead nowhere, and its role in the rules."""
    for route in iter_route_contexts(app.routes):
        for method in sorted((route.methods or set()) - {"HEAD"}):
            path = re.sub(r"\{[^}]*:int\}", "0", str(route.path))
            path = path.replace("{role}", "source")
            yield method, re.sub(r"\{[^}]*\}", SOURCE, path), declared_rules()[f"{method} {route.path}"].role


def test_every_route_is_in_the_walk_and_in_the_document(app: FastAPI) -> None:
    document: dict[str, Any] = app.openapi()
    hidden = {"/openapi.json", "/docs", "/ui", "/ui/{path}", "/wire/{part}/{name}"}
    hidden.add("/wire/streams/{stream}/{life}/{name}")
    shown = set()
    for route in iter_route_contexts(app.routes):
        for method in (route.methods or set()) - {"HEAD"}:
            shown.add(route.path_format)
            if route.path_format in hidden:
                continue
            operation = document["paths"][route.path_format][method.lower()]
            role = declared_rules()[f"{method} {route.path}"].role
            assert operation["x-penstock-role"] == role
            assert ("security" in operation) == (role != "public")
    assert shown == {*document["paths"], *hidden}
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}


def test_each_role_can_do_what_it_includes_and_nothing_else(app: FastAPI) -> None:
    tokens = {role: token_of(app, role) for role in (*ROLES, "worker")}
    tokens["ingest"] = token_of(app, "ingest", source=SOURCE)
    # The answers of these have no end.
    follows = {
        str(route.path_format).replace("{name}", SOURCE)
        for route in iter_route_contexts(app.routes)
        if route.response_class is EventStream
    }

    async def walk() -> list[str]:
        wrong = []
        for role in CALLERS:
            async with asgi(app, tokens[role] if role else None) as client:
                for method, path, need in routes(app):
                    allowed = permits(role, need) if role else need == "public"
                    if allowed and path in follows:
                        continue
                    # What cannot be read is refused by the routes themselves, before they ask a worker.
                    sent = client.request(method, path, content=b"" if method == "GET" else b"{")
                    answer = await asyncio.wait_for(sent, 20)
                    expected = 401 if role is None or need == "worker" else 403
                    codes = {401: "unauthorised", 403: "forbidden"}
                    refused = answer.status_code in codes and answer.json().get("code") in codes.values()
                    if allowed == refused or (not allowed and answer.status_code != expected):
                        wrong.append(f"{role}: {method} {path} needs {need}: {answer.status_code}")
        return wrong

    assert asyncio.run(walk()) == []


def test_what_is_no_route_is_not_told_to_strangers(app: FastAPI) -> None:
    async def ask() -> None:
        async with asgi(app) as client:
            assert (await client.get("/nothing")).status_code == 401
            assert (await client.request("OPTIONS", "/pipelines")).status_code == 401
        async with asgi(app, token_of(app, "viewer")) as client:
            assert (await client.get("/nothing")).status_code == 404
            assert (await client.delete("/pipelines")).status_code == 405

    asyncio.run(ask())


def test_a_route_without_a_role_does_not_start(app: FastAPI) -> None:
    @app.get("/new")
    def new() -> None: ...

    with pytest.raises(ValueError, match="no role is declared for GET /new"):
        Rules(app)


def test_an_ingest_token_can_do_one_thing(app: FastAPI) -> None:
    async def ask() -> None:
        async with asgi(app, token_of(app, "ingest", source="orders")) as client:
            assert (
                await client.post("/ingest/orders", json={})
            ).status_code == 404  # there is no such source
            for path in ("/ingest/order", "/ingest/orders/", "/ingest/orders/x", "/ingest/Orders"):
                refused = await client.post(path, json={})
                assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
            for method, path in (("POST", "/streams/orders/events"), ("GET", "/sources"), ("GET", "/tokens")):
                assert (await client.request(method, path)).status_code == 403

    asyncio.run(ask())
