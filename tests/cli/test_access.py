"""Users, tokens and log-ins by the command line."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.control.access.audit import Audit
from penstock.control.registry import Registry
from tests.api.kit import Api, open_service, running
from tests.cli.commands import Penstock
from tests.cli.conftest import Command

PASSWORD = "correct horse"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Api]:
    with open_service(tmp_path / "home") as service, running(service) as found:
        yield found


@pytest.fixture
def config(tmp_path: Path, in_process: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def test_users_are_managed_on_the_registry(in_process: Command, tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "home")]
    assert in_process("user", "add", "ann", "--role", "viewer", *home, stdin=PASSWORD).exit_code == 1
    assert in_process("user", "add", "ann", "--role", "admin", *home, stdin="short\n").exit_code == 3
    assert in_process("user", "add", "ann", "--role", "admin", *home, stdin=f"{PASSWORD}\n").exit_code == 0
    assert in_process("user", "add", "bob", "--role", "viewer", *home, stdin=f"{PASSWORD}\n").exit_code == 0
    refused = in_process("user", "role", "ann", "editor", *home)
    assert refused.exit_code == 1
    assert "last_admin" in refused.stderr
    assert in_process("user", "role", "bob", "admin", *home).exit_code == 0
    assert in_process("user", "disable", "ann", *home).exit_code == 0
    assert in_process("user", "passwd", "bob", *home, stdin="another horse\n").exit_code == 0
    assert in_process("user", "rm", "ann", "--yes", *home).exit_code == 0
    listed = json.loads(in_process("user", "ls", "--json", *home).stdout)["items"]
    assert [(user["name"], user["role"]) for user in listed] == [("bob", "admin")]
    registry = Registry.open(f"sqlite:///{tmp_path / 'home' / 'registry.db'}")
    entries = Audit(registry, 1).entries()
    registry.close()
    assert [entry.action for entry in entries] == [
        "user.delete", "user.password", "user.update", "user.update", "user.create", "user.create",
    ]  # fmt: skip
    assert {entry.via for entry in entries} == {"cli"}
    assert entries[3].before == {"role": "viewer", "via": "password", "disabled": False}
    assert "horse" not in str(entries)


def test_commands_log_in_and_send_their_token(in_process: Command, server: Api, config: Path) -> None:
    at, home = ["--server", server.url], ["--home", str(server.service.settings.home)]
    assert in_process("get", "streams", *at).exit_code == 0, "nobody has to log in yet"
    assert in_process("user", "add", "ann", "--role", "admin", *home, stdin=f"{PASSWORD}\n").exit_code == 0
    server.client.get("/streams")
    _await_authentication(server)
    refused = in_process("get", "streams", *at)
    assert refused.exit_code == 1
    assert "penstock login" in refused.stderr
    assert in_process("login", "--user", "ann", *at, stdin="wrong password\n").exit_code == 1
    assert in_process("login", "--user", "ann", *at, stdin=f"{PASSWORD}\n").exit_code == 0
    file = config / "penstock" / "tokens.json"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert set(json.loads(file.read_text())) == {server.url}
    assert in_process("get", "streams", *at).exit_code == 0

    made = in_process("token", "create", "dashboard", "--role", "viewer", "--days", "1", *at)
    assert made.exit_code == 0, made.output
    viewer = made.stdout.strip()
    assert in_process("get", "streams", "--token", viewer, *at).exit_code == 0
    forbidden = in_process("audit", "--token", viewer, *at)
    assert forbidden.exit_code == 1
    assert "needs the role admin; you have viewer" in forbidden.stderr
    listed = in_process("token", "ls", *at).stdout
    assert "dashboard" in listed
    assert viewer.partition(".")[2] not in listed
    assert in_process("token", "revoke", viewer.partition(".")[0], *at).exit_code == 0
    assert in_process("get", "streams", "--token", viewer, *at).exit_code == 1
    trail = json.loads(in_process("audit", "--json", *at).stdout)["entries"]
    actions = [entry["action"] for entry in trail]
    assert actions[:4] == ["request", "token.revoke", "request", "token.create"]  # two were refused
    assert in_process("logout", *at).exit_code == 0
    assert in_process("get", "streams", *at).exit_code == 1


def _await_authentication(server: Api) -> None:
    until = time.monotonic() + 30
    while server.client.get("/session").json()["authentication"] == "off":
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_not_let_in_without_authentication(
    in_process: Command, tmp_path: Path, host: str
) -> None:
    refused = in_process(
        "up", "--host", host, "--port", "0", "--workers", "0", "--home", str(tmp_path / "home")
    )
    assert refused.exit_code == 1
    assert "no_authentication" in refused.stderr
    for text in ("penstock user add NAME --role admin", 'auth.mode = "on"'):
        assert text in refused.stderr


@pytest.mark.slow
def test_a_server_with_authentication_prints_a_link_for_the_first_admin(penstock: Penstock) -> None:
    penstock.env |= {"PENSTOCK_AUTH_MODE": "on", "XDG_CONFIG_HOME": str(penstock.directory / "config")}
    process = penstock.start("up", "--port", "0", "--workers", "0")
    assert process.stdout is not None
    found = None
    while found is None:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        found = re.search(r"(http://\S+)/ui/setup#(\S+)", line)
    url, secret = found[1], found[2]
    penstock.env["PENSTOCK_SERVER"] = url
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/streams").status_code == 401
        body = {"secret": secret, "name": "ann", "password": PASSWORD}
        assert client.post("/session/setup", json=body).json()["user"]["role"] == "admin"
        assert client.get("/streams").status_code == 200
    assert penstock("login", "--user", "ann", stdin=f"{PASSWORD}\n").returncode == 0
    done = penstock("get", "streams")
    assert done.returncode == 0, done.stderr
