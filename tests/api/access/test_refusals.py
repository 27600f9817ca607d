"""Refused requests in the audit trail: who, what and from where, however many there are."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from penstock.control.access import refusals
from penstock.control.access.access import Access
from penstock.control.access.audit import Entry
from penstock.control.documents.service import Service
from penstock.control.registry.tables import audit
from tests.api.access.kit import app_with_users, asgi, token_of


@pytest.fixture
def app(service: Service) -> FastAPI:
    return app_with_users(service)


def entries(app: FastAPI) -> list[Entry]:
    access: Access = app.state.access
    return access.audit.entries(limit=1000)[::-1]


def test_a_refused_request_is_in_the_trail(app: FastAPI) -> None:
    async def ask() -> None:
        async with asgi(app) as anonymous, asgi(app, token_of(app, "viewer")) as viewer:
            assert (await anonymous.get("/pipelines")).status_code == 401
            assert (await anonymous.post("/pipelines", json={})).status_code == 401
            assert (await viewer.delete("/pipelines/orders")).status_code == 403
            assert (await viewer.get("/users")).status_code == 403
            foreign = {"Origin": "http://evil.example"}
            assert (await viewer.post("/streams", json={}, headers=foreign)).status_code == 403
            assert (await viewer.get("/streams", headers={"Host": "evil.example"})).status_code == 421
            assert (await viewer.get("/streams")).status_code == 200

    asyncio.run(ask())
    found = [(each.user, each.action, each.target, each.status) for each in entries(app)]
    assert found == [
        (None, "request", "GET /pipelines", 401),
        (None, "pipeline.create", "POST /pipelines", 401),
        ("viewer", "pipeline.delete", "DELETE /pipelines/orders", 403),
        ("viewer", "request", "GET /users", 403),
        (None, "request", "POST /streams", 403),
        (None, "request", "GET /streams", 421),
    ]
    assert {each.address for each in entries(app)} == {"127.0.0.1"}


def test_a_flood_makes_few_entries(app: FastAPI) -> None:
    async def flood() -> None:
        async with asgi(app) as anonymous:
            for number in range(300):
                assert (await anonymous.get("/streams")).status_code == 401
                assert (await anonymous.get(f"/streams/{number}")).status_code == 401

    asyncio.run(flood())
    app.state.access.refusals.flush()
    found = entries(app)
    assert len(found) <= refusals.EACH + refusals.MOST + 2
    counted = Counter[str]()
    for each in found:
        counted[each.target] += each.after["requests"] if each.after else 1
    assert counted["GET /streams"] == 300
    assert counted.total() == 600
    assert counted["others"] == 300 - (refusals.MOST - 1)


def test_log_ins_that_fail_or_have_to_wait_are_counted(app: FastAPI) -> None:
    async def guess() -> None:
        async with asgi(app) as anonymous:
            for number in range(40):
                answer = await anonymous.post("/session", json={"name": "admin", "password": "guess"})
                assert answer.status_code == (401 if number < 5 else 429)

    asyncio.run(guess())
    app.state.access.refusals.flush()
    found = [each for each in entries(app) if each.action == "session.login"]
    assert {(each.user, each.target, each.address) for each in found} == {
        ("admin", "user/admin", "127.0.0.1")
    }
    assert [each.status for each in found] == [401] * 5 + [429] * 6
    assert found[-1].after == {"requests": 30}


def test_the_oldest_refusals_make_room_and_other_entries_stay(
    app: FastAPI, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "KEPT", 10)
    monkeypatch.setattr(refusals, "MOST", 20)
    access: Access = app.state.access
    access.audit.record("stream.create", "stream/a", user="admin", via="password")
    for number in range(100):
        access.refusals.write(refusals.Refusal("request", f"GET /{number}", None, None, "10.0.0.1", 401))
    with service.registry.engine.connect() as conn:
        assert (conn.scalar(select(func.count()).select_from(audit)) or 0) <= 1 + 10 + 20
    assert entries(app)[0].action == "stream.create"
    assert entries(app)[-1].target == "GET /99"
