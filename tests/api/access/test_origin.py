"""Under which names a server answers, and which headers its answers have."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.api.origin import ServerNames
from penstock.settings import load
from tests.api.kit import Api, codes, stream


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.168.0.9"]
)
def test_a_name_that_is_not_the_servers_is_refused(api: Api, host: str) -> None:
    for method, path in (
        ("GET", "/streams"),
        ("POST", "/ingest/x"),
        ("GET", "/ui/"),
        ("GET", "/openapi.json"),
    ):
        refused = api.client.request(method, path, headers={"Host": host})
        assert (refused.status_code, codes(refused)) == (421, ["wrong_host"])
        assert "auth.hosts" in refused.json()["hint"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8080", "[::1]"])
def test_this_machine_is_known_by_its_names(api: Api, host: str) -> None:
    assert api.client.get("/streams", headers={"Host": host}).status_code == 200


def names(tmp_path: Path, **settings: object) -> ServerNames:
    return ServerNames.of(load(settings, env={}, cwd=tmp_path).settings)


def test_names_come_from_the_settings(tmp_path: Path) -> None:
    found = names(tmp_path, **{"auth.hosts": "penstock.example.com, other.example:8443"})
    assert found.include("Penstock.example.com")
    assert found.include("penstock.example.com:443")
    assert found.include("other.example:8443")
    assert not found.include("other.example")
    assert names(tmp_path, host="10.1.2.3").include("10.1.2.3:8080")
    assert not names(tmp_path, host="10.1.2.3").include("10.1.2.4")
    everywhere = names(tmp_path, host="0.0.0.0")
    assert everywhere.include("10.1.2.4:8080")
    assert everywhere.include("[fe80::1]:8080")
    assert not everywhere.include("evil.example")


def test_answers_tell_browsers_what_they_must_not_do(api: Api) -> None:
    for path in ("/streams", "/nothing", "/healthz", "/docs", "/ui/"):
        headers = api.client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "Content-Security-Policy" in headers
        assert "Strict-Transport-Security" not in headers
    sent = api.client.post("/streams", json=stream("a"), headers={"Host": "localhost"})
    assert sent.headers["X-Content-Type-Options"] == "nosniff"
