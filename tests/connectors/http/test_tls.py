"""HTTPS, logins and settings of the `http` sink, without Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.connectors.http.sink import HttpSink
from penstock.connectors.messages.sink import Message
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.frames.http.clients import authorization
from penstock.policy import UNRESTRICTED
from penstock.specs.http import Auth
from tests.http_deliveries import deliver, events, sink
from tests.http_server import Said, Server, serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, with its key, that only those trust who have it."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
    made = [*command.split(), "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run(made, check=True, capture_output=True)
    file.write_text(file.read_text() + Path(f"{file}.crt").read_text())
    return file


def test_https(certificate: Path, tmp_path: Path) -> None:
    with serving(certificate=certificate) as server:
        assert deliver(sink(server, tls={"ca_file": str(certificate)}), events(server, 2)).events == 2
        with pytest.raises(Invalid, match="no encrypted connection") as caught:
            deliver(sink(server), events(server, 1))
        assert caught.value.problems[0].code == "http_tls"
        with pytest.raises(Invalid, match="no such file") as caught:
            deliver(sink(server, tls={"ca_file": str(tmp_path / "no.pem")}), events(server, 1))
        assert caught.value.problems[0].path == "tls.ca_file"
        elsewhere = [Message(f"https://localhost:{server.port}/", b"{}")]
        with pytest.raises(Invalid, match="no encrypted connection"):
            deliver(sink(server, tls={"ca_file": str(certificate)}), elsewhere)
        trusting = {"ca_file": str(certificate), "verify_hostname": False}
        assert deliver(sink(server, tls=trusting), elsewhere).events == 1


def test_certificates_of_clients(certificate: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    key = [
        "openssl",
        "pkey",
        "-in",
        str(certificate),
        "-aes256",
        "-passout",
        "pass:s3cret",
        "-out",
        str(locked),
    ]
    subprocess.run(key, check=True, capture_output=True)
    chain = certificate.read_text()
    locked.write_text(locked.read_text() + chain[chain.index("-----BEGIN CERTIFICATE") :])
    with serving(certificate=certificate, asks=True) as server:
        trust = {"ca_file": str(certificate)}
        with pytest.raises(PenstockError):
            deliver(sink(server, tls=trust), events(server, 1))
        mine = {**trust, "certificate_file": str(locked), "key_password": "s3cret"}
        assert deliver(sink(server, tls=mine), events(server, 1)).events == 1
        with pytest.raises(Invalid) as caught:
            deliver(sink(server, tls={**mine, "key_password": "wrong"}), events(server, 1))
        assert caught.value.problems[0].path == "tls.certificate_file"
        assert "wrong" not in str(caught.value)


def test_the_login_of_a_connection_that_is_no_request(server: Server) -> None:
    server.answer = lambda _: Said({"access_token": "fetched"})
    login = {"token_url": f"{server.url}/token", "client_id": "id", "client_secret": "secret"}
    assert authorization(UNRESTRICTED, Auth.model_validate({"oauth2": login}), 2.0) == "Bearer fetched"
    basic = {"username": "u", "password": "p"}
    assert authorization(UNRESTRICTED, Auth.model_validate({"basic": basic}), 2.0) == "Basic dTpw"
    server.stop()
    with pytest.raises(Unavailable, match="no response"):
        authorization(UNRESTRICTED, Auth.model_validate({"oauth2": login}), 2.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "ftp://x/y"}, "http:// or https://"),
        ({"url": "https://u:p@x/"}, "use 'auth'"),
        ({"url": "https://x/{a:3}"}, "between braces"),
        ({"url": "https://x/{"}, "'{'"),
        ({"max_events": 5}, "can't be used with body 'event'"),
        ({"method": "DELETE", "body": "lines"}, "no body"),
        ({"headers": {"a b": "x"}}, "valid header name"),
        ({"headers": {"Host": "x"}}, "client itself"),
        ({"headers": {"a": "x\ny"}}, "control character"),
        ({"headers": {"A": "x", "a": "y"}}, "duplicate header"),
        ({"headers": {"authorization": "x"}, "auth": {"bearer": "x"}}, "either 'auth'"),
        ({"auth": {}}, "exactly one"),
        ({"auth": {"bearer": "x", "basic": {"username": "u", "password": "p"}}}, "exactly one"),
        ({"retry_statuses": [500]}, "from 400 to 499"),
    ],
)
def test_settings_that_cannot_work(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        HttpSink.model_validate({"type": "http", "url": "https://x/", **fields})
