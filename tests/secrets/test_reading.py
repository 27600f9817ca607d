from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.policy import Policy
from penstock.redaction import HIDDEN, redacted
from penstock.secrets import Secrets
from penstock.settings import load


def secrets(home: Path, **settings: Any) -> Secrets:
    return Secrets.of(load({"home": home, **settings}, env={}).settings)


def read(reader: Secrets, spec: dict[str, Any], variables: tuple[str, ...] = ()) -> str:
    document = {"kind": "Secret", "metadata": {"name": "x"}, "spec": spec}
    found = {("Secret", "my_secret"): document}
    return reader.read("My Secret", lambda *key: found.get(key), lambda name: name in variables)


def problem(reader: Secrets, spec: dict[str, Any], variables: tuple[str, ...] = ()) -> Problem:
    with pytest.raises(PenstockError) as raised:
        read(reader, spec, variables)
    (found,) = raised.value.problems
    return found


def test_values_of_a_file_a_variable_and_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "password").write_text("from a file\n")
    monkeypatch.setenv("DB_PASSWORD", "from a variable")
    reader = secrets(tmp_path, **{"secrets.directories": [str(mounted)]})
    assert reader.keys is not None
    reader.keys.make()
    assert read(reader, {"file": str(mounted / "password")}) == "from a file"
    assert read(reader, {"environment": "DB_PASSWORD"}, ("DB_PASSWORD",)) == "from a variable"
    assert read(reader, {"sealed": reader.keys.seal("my_secret", "from the registry")}) == "from the registry"
    assert read(reader, {"value": "from a document"}) == "from a document"


def test_files_elsewhere_and_variables_that_are_not_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (tmp_path / "other").write_text("x")
    (mounted / "link").symlink_to(tmp_path / "other")
    (mounted / "bytes").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("PATH_OF_SOMEBODY", "x")
    reader = secrets(tmp_path, **{"secrets.directories": [str(mounted)]})
    for path in [mounted / "link", mounted / ".." / "other", tmp_path / "other", mounted]:
        assert "not below secrets.directories" in problem(reader, {"file": str(path)}).message
    assert "No such file" in problem(reader, {"file": str(mounted / "gone")}).message
    assert "not UTF-8" in problem(reader, {"file": str(mounted / "bytes")}).message
    found = problem(reader, {"environment": "PATH_OF_SOMEBODY"})
    assert "policy.variables" in (found.hint or "")
    assert "not set" in problem(reader, {"environment": "MISSING"}, ("MISSING",)).message


def test_unknown_and_broken_secrets(tmp_path: Path) -> None:
    reader = secrets(tmp_path)
    with pytest.raises(Invalid, match="no secret 'gone'"):
        reader.read("gone", lambda *_: None, lambda _: True)
    assert problem(reader, {}).code == "secret_unreadable"
    assert problem(reader, {"value": "a", "file": "b"}).code == "secret_unreadable"
    assert "secrets.vault_url" in (problem(reader, {"vault": {"path": "a"}}).hint or "")


def test_what_was_read_is_hidden_in_problems_and_texts(tmp_path: Path) -> None:
    value = 'p@ss/wörd "x"'
    read(secrets(tmp_path), {"value": value})
    told = Problem(code="failed", message=f"cannot log in with {value}", hint=f"not {value}")
    assert (told.message, told.hint) == (f"cannot log in with {HIDDEN}", f"not {HIDDEN}")
    for text in [json.dumps({"a": value}), "postgresql://me:p%40ss%2Fw%C3%B6rd%20%22x%22@db/x", f"<{value}>"]:
        assert "rd" not in redacted(text).replace("password", "")
    assert redacted("nothing to hide") == "nothing to hide"


def test_keys_stay_in_their_process(tmp_path: Path) -> None:
    policy = Policy.of(load({"home": tmp_path, "secrets.key": "a" * 43 + "="}, env={}).settings)
    sent = pickle.dumps(policy)
    assert b"a" * 43 not in sent
    assert pickle.loads(sent).secrets.keys is None


class Vault(BaseHTTPRequestHandler):
    """The answers of the key-value engines of Vault, as its documentation has them."""

    seen: ClassVar[list[tuple[str, str | None, str | None]]] = []
    answers: ClassVar[dict[str, tuple[int, Any]]] = {
        "/v1/secret/data/billing/db": (200, {"data": {"data": {"value": "of two", "user": "me", "port": 1}}}),
        "/v1/old/billing": (200, {"data": {"value": "of one"}}),
        "/v1/secret/data/sealed": (503, {"errors": ["Vault is sealed"]}),
        "/v1/secret/data/forbidden": (403, {"errors": ["permission denied"]}),
        "/v1/secret/data/html": (200, None),
    }

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers["X-Vault-Token"], self.headers["X-Vault-Namespace"]))
        status, body = self.answers.get(self.path, (404, {"errors": []}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"<html>" if body is None else json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def vault() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Vault)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_fields_in_vault(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s.first\n")
    with vault() as url:
        given = {"vault_url": f"{url}/", "vault_token_file": tmp_path / "token", "vault_namespace": "team"}
        reader = secrets(tmp_path, **{f"secrets.{name}": value for name, value in given.items()})
        assert read(reader, {"vault": {"path": "billing/db"}}) == "of two"
        assert Vault.seen[-1] == ("/v1/secret/data/billing/db", "s.first", "team")
        (tmp_path / "token").write_text("s.renewed")
        assert read(reader, {"vault": {"path": "billing/db", "field": "user"}}) == "me"
        assert Vault.seen[-1][1] == "s.renewed"
        assert read(reader, {"vault": {"mount": "old", "path": "billing", "kv": 1}}) == "of one"

        for path, said in {
            "gone": "answers 404",
            "forbidden": "refuses",
            "sealed": "Vault is sealed",
            "html": "no text field",
        }.items():
            assert said in problem(reader, {"vault": {"path": path}}).message
        assert "'port'" in problem(reader, {"vault": {"path": "billing/db", "field": "port"}}).message
        (tmp_path / "token").unlink()
        assert problem(reader, {"vault": {"path": "gone"}}).code == "vault_unavailable"
        assert not any("s.first" in each.message for each in [problem(reader, {"vault": {"path": "gone"}})])
    (tmp_path / "token").write_text("x")
    with pytest.raises(Unavailable, match="can't be reached"):
        read(reader, {"vault": {"path": "billing/db"}})


@pytest.mark.parametrize("path", ["../sys/seal", "a//b", "/a", "a?x=1", "a b", ""])
def test_paths_that_lead_out_of_the_engine(tmp_path: Path, path: str) -> None:
    reader = secrets(tmp_path, **{"secrets.vault_url": "http://127.0.0.1:1", "secrets.vault_token": "x"})
    assert problem(reader, {"vault": {"path": path}}).code == "secret_unreadable"
