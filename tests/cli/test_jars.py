from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from penstock.spark import jars
from penstock.spark.jars import Jar, JarSet
from tests.cli.conftest import Command

CONTENT = b"classes"
ONE = Jar("org.example", "one", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def _one_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_process: Command) -> None:
    monkeypatch.setattr(jars, "SETS", {"one": JarSet("org.example.One", (ONE,))})
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PENSTOCK_JARS_REPOSITORY", "http://127.0.0.1:9/maven")


def test_list_says_what_is_here(in_process: Command, tmp_path: Path) -> None:
    before = in_process("jars", "list", "--json")
    assert json.loads(before.stdout)["jars"][0]["file"] is None
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    (tmp_path / "cache" / "jars" / ONE.file).write_bytes(CONTENT)
    assert "org.example:one" in (shown := in_process("jars", "list").stdout)
    assert shown.split()[-1] == "yes"
    fetched = in_process("jars", "fetch", "--json")
    assert json.loads(fetched.stdout) == {"files": [str(tmp_path / "cache" / "jars" / ONE.file)]}


def test_fetch_fails_with_a_hint(in_process: Command) -> None:
    done = in_process("jars", "fetch", "one")
    assert done.exit_code == 1
    assert "downloading one 1.0…" in done.stderr
    assert "error[jars_missing]" in done.stderr
    assert "jars.repository" in done.stderr
    assert in_process("jars", "fetch", "two").exit_code == 1
