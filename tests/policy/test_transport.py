"""Real connections: to the address that was checked, and to no other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from penstock.errors import Invalid
from penstock.frames.http.clients import client_of
from penstock.frames.http.transport import connected
from penstock.policy.addresses import Addresses
from penstock.policy.paths import Paths
from penstock.policy.policy import Policy


class Redirecting(BaseHTTPRequestHandler):
    """Answers with its address and the `Host` it was asked for; `/away` leads to a metadata service."""

    def do_GET(self) -> None:
        away = self.path == "/away"
        self.send_response(302 if away else 200)
        if away:
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
        body = self.headers["Host"].encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def policy(addresses: Addresses) -> Policy:
    return Policy(Paths(()), addresses)


def code_of(client: httpx.Client, url: str) -> str:
    with pytest.raises(Invalid) as raised:
        client.get(url)
    return raised.value.problems[0].code


def test_a_redirect_to_a_metadata_service_is_not_followed(port: int) -> None:
    with client_of(policy(Addresses(private=True)), None, None, 5, 1) as client:
        assert client.get(f"http://127.0.0.1:{port}/away").status_code == 302
        client.follow_redirects = True
        assert code_of(client, f"http://127.0.0.1:{port}/away") == "address_not_allowed"


def test_a_name_with_two_addresses_is_refused_if_one_of_them_is_not_allowed(port: int) -> None:
    two = Addresses(resolver=lambda host: ["127.0.0.1", "169.254.169.254"])
    with client_of(policy(two), None, None, 5, 1) as client:
        assert code_of(client, f"http://two.example:{port}/") == "address_not_allowed"


def test_the_connection_goes_to_the_address_that_was_checked(port: int) -> None:
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    asked: list[str] = []

    def rebinding(host: str) -> list[str]:
        asked.append(host)
        return next(answers)

    with client_of(policy(Addresses(resolver=rebinding)), None, None, 5, 0) as client:
        found = client.get(f"http://rebound.example:{port}/")
        assert found.text == f"rebound.example:{port}"  # the name is still the server's
        assert asked == ["rebound.example"]  # once: what it means a moment later is not asked for
        assert code_of(client, f"http://rebound.example:{port}/") == "address_not_allowed"


def test_the_next_address_is_tried_if_one_does_not_answer(port: int) -> None:
    several = policy(Addresses(resolver=lambda host: ["127.0.0.9", "127.0.0.1"]))
    with client_of(several, None, None, 5, 1) as client:
        assert client.get(f"http://several.example:{port}/").status_code == 200
    with connected(several, "several.example", port, 5) as found:
        assert found.getpeername() == ("127.0.0.1", port)


def test_loopback_is_refused_where_private_addresses_are(port: int) -> None:
    with client_of(policy(Addresses(private=False)), None, None, 5, 1) as client:
        for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0"):
            assert code_of(client, f"http://{host}:{port}/") == "address_not_allowed"


def test_a_name_that_does_not_exist_is_no_matter_of_the_policy() -> None:
    unknown = policy(Addresses(resolver=lambda host: []))
    with client_of(unknown, None, None, 5, 1) as client, pytest.raises(httpx.ConnectError):
        client.get("http://unknown.example/")
    with pytest.raises(socket.gaierror):
        connected(unknown, "unknown.example", 80, 1)


def test_behind_a_proxy_the_address_is_checked_too(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    with client_of(policy(Addresses(resolver=lambda host: ["93.184.216.34"])), None, None, 5, 1) as client:
        assert client.get("http://behind.example/").text == "behind.example"
        assert code_of(client, "http://169.254.169.254/") == "address_not_allowed"
