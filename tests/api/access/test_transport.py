"""What TLS, proxies and time change for those who log in."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from penstock.api.app import create_app
from penstock.api.server import Server
from penstock.control.access import audit as audit_module
from penstock.control.access.access import Access
from penstock.control.access.audit import Audit
from penstock.control.documents.service import Service
from penstock.control.registry import tables
from tests.api.access.kit import PASSWORD, logged_in
from tests.api.kit import open_service, running, stream
from tests.cli.test_remote_worker import certificate


@contextmanager
def encrypted(service: Service, trusted: Path) -> Iterator[httpx.Client]:
    """A server with TLS, and a client that trusts its certificate."""
    ready = threading.Event()
    server = Server(create_app(service), service.settings, lambda _: ready.set())
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60)
        context = ssl.create_default_context(cafile=trusted)
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False, verify=context) as client:
            yield client
    finally:
        server.stop()
        thread.join(60)


def test_over_tls_cookies_are_secure_and_browsers_stay_with_it(tmp_path: Path) -> None:
    crt, key = certificate(tmp_path)
    with open_service(tmp_path / "home", **{"tls.certificate": str(crt), "tls.key": str(key)}) as service:
        Access(service.settings, service.registry).users.add("admin", "admin", PASSWORD)
        with encrypted(service, crt) as client:
            answer = client.post("/session", json={"name": "admin", "password": PASSWORD})
            assert answer.status_code == 200, answer.text
            assert answer.headers["strict-transport-security"].startswith("max-age=")
            cookie = answer.headers["set-cookie"].lower()
            assert {"secure", "httponly", "samesite=strict"} <= {part.strip() for part in cookie.split(";")}
            client.headers["X-CSRF-Token"] = answer.json()["csrf"]
            assert client.post("/streams", json=stream("orders")).status_code == 201


def test_without_tls_cookies_are_not_marked_secure(tmp_path: Path) -> None:
    with open_service(tmp_path) as service:
        Access(service.settings, service.registry).users.add("admin", "admin", PASSWORD)
        with running(service) as server:
            answer = server.client.post("/session", json={"name": "admin", "password": PASSWORD})
            assert "secure" not in answer.headers["set-cookie"].lower().replace(" ", "").split(";")
            assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize(("proxies", "seen"), [("127.0.0.1", "203.0.113.9"), ("203.0.113.1", "127.0.0.1")])
def test_the_address_of_a_caller_is_taken_from_known_proxies_only(
    tmp_path: Path, proxies: str, seen: str
) -> None:
    with open_service(tmp_path, **{"auth.proxies": proxies}) as service:
        Access(service.settings, service.registry).users.add("admin", "admin", PASSWORD)
        with running(service) as server:
            client = logged_in(server.client, "admin")
            sent = client.post("/streams", json=stream("a"), headers={"X-Forwarded-For": "203.0.113.9"})
            assert sent.status_code == 201, sent.text
            entry = client.get("/audit", params={"action": "stream.create"}).json()["entries"][0]
            assert entry["address"] == seen


def test_old_entries_of_the_audit_trail_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "PRUNE_S", 0.0)
    with open_service(tmp_path) as service:
        trail = Audit(service.registry, retention_days=30)
        for name in ("old", "young"):
            trail.record("stream.create", f"stream/{name}", user="ann", via="session")
        with service.registry.begin() as conn:
            past = datetime.now(UTC) - timedelta(days=31)
            old = tables.audit.c.target == "stream/old"
            conn.execute(update(tables.audit).where(old).values(at=past))
        trail.record("stream.create", "stream/new", user="ann", via="session")
        assert [entry.target for entry in trail.entries()] == ["stream/new", "stream/young"]
