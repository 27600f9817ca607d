"""Spark starts while a command reads and checks its documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import PATIENCE_S, Penstock, quiet_environment
from tests.cli.test_validate import GOOD

GIVES_UP = """
import sys, time
from penstock.cli import sessions
from penstock.settings import load

settings = load({"home": sys.argv[1]}).settings
with sessions.starting_spark(settings) as spark:
    while not sessions._jvms():
        time.sleep(0.01)
print(len(sessions._jvms()), spark._thread.is_alive())
"""


def test_a_session_that_is_not_asked_for_leaves_nothing_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", GIVES_UP, str(home)],
        env=quiet_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == ("0 False\n", "")
    assert not home.exists()


@pytest.mark.parametrize("command", ["run", "validate"])
def test_an_error_in_a_document_is_told_as_if_there_were_no_spark(penstock: Penstock, command: str) -> None:
    file = penstock.write("bad.yaml", GOOD.replace("rate: 1", "rate: fast"))
    done = penstock(command, file)
    assert (done.returncode, done.stdout) == (3, "")
    assert "error[wrong_type] spec.source.rate: " in done.stderr
    assert "Spark" not in done.stderr
    assert not penstock.home.exists()


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_machine_without_java_is_told_so(penstock: Penstock, command: str) -> None:
    penstock.env["JAVA_HOME"] = "/nowhere"
    done = penstock(command, penstock.write("good.yaml", GOOD))
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[no_java] Spark needs Java" in done.stderr
    assert "Traceback" not in done.stderr
