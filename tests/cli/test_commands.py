"""Parsing, exit codes and what needs no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.kinds import PLURALS, kind_of
from penstock.cli.main import app
from penstock.cli.output import Usage
from penstock.cli.text import plural, rate, when
from penstock.control.monitor.installation import masked
from penstock.specs.documents import KINDS
from tests.cli.commands import Penstock, completed, quiet_environment

runner = CliRunner()


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in set(os.environ) - set(quiet_environment()):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))


def test_every_command_explains_itself() -> None:
    told = runner.invoke(app, ["--help"]).stdout
    for command in ("up", "worker", "run", "validate", "apply", "get", "describe", "delete", "config"):
        assert command in told
        assert runner.invoke(app, [command, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["run"],
        ["run", "missing.yaml"],
        ["get", "things"],
        ["get", "s"],
        ["get", "streams", "--status", "active"],
        ["get", "pipelines", "orders", "--limit", "3"],
        ["get", "pipelines", "-o", "xml"],
        ["delete", "pipeline", "orders"],
        ["import", "-", "--mode", "append"],
        ["up", "--port", "99999"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr


def test_a_missing_server_is_told_with_the_way_out() -> None:
    result = runner.invoke(app, ["get", "pipelines", "--server", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error[no_server] no server is responding at http://127.0.0.1:9")
    assert "hint: start one with `penstock up`" in result.stderr

    result = runner.invoke(app, ["pause", "x", "--server", "127.0.0.1:9", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["items"][0]["error"]["code"] == "no_server"


def test_the_server_follows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "7")
    assert "http://127.0.0.1:7" in runner.invoke(app, ["get", "pipelines"]).stderr
    monkeypatch.setenv("PENSTOCK_SERVER", "http://[::1]:8/")
    assert "http://[::1]:8\n" in runner.invoke(app, ["get", "pipelines"]).stderr


def test_config_shows_origins_and_hides_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_REGISTRY_URL", "postgresql://me:hush@db/x")
    monkeypatch.setenv("PENSTOCK_SPARK_HADOOP_FS_S3A_SECRET_KEY", "hush")
    monkeypatch.setenv("PENSTOCK_PROT", "1")
    (tmp_path / "penstock.toml").write_text("workers = 3\n")

    shown = json.loads(runner.invoke(app, ["config", "--json"]).stdout)
    settings = shown["settings"]
    assert settings["registry.url"] == {
        "value": "postgresql://me:***@db/x",
        "from": "PENSTOCK_REGISTRY_URL",
    }
    assert settings["workers"] == {"value": 3, "from": f"penstock.toml ({tmp_path / 'penstock.toml'})"}
    assert shown["warnings"][0]["path"] == "PENSTOCK_PROT"

    result = runner.invoke(app, ["config"])
    assert "hush" not in result.output + json.dumps(shown)
    assert "warning[unknown_variable] PENSTOCK_PROT" in result.stderr


def test_a_bad_setting_is_told_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "many")
    result = runner.invoke(app, ["config"])
    assert result.exit_code == 2
    assert "error[invalid_value] port:" in result.stderr
    assert "set by PENSTOCK_PORT" in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("url", "postgresql://db/x", "postgresql://db/x"),
        ("url", "postgresql://me:a:b@db/x?password=c", "postgresql://me:***@db/x?password=***"),
        ("spark.x.password", "hush", "***"),
        ("defaults.source", {"password": "hush", "options": [{"token": "t"}]}, None),
        ("port", 8080, 8080),
    ],
)
def test_secrets_are_masked(name: str, value: Any, shown: Any) -> None:
    if shown is None:
        shown = {"password": "***", "options": [{"token": "***"}]}
    assert masked(name, value) == shown


def test_an_unexpected_error_is_short_unless_asked(penstock: Penstock) -> None:
    script = (
        "import penstock.cli.run as run, penstock.cli.main as main, sys; "
        "run.read_files = lambda _: 1 / 0; sys.argv[1:] = ['run', 'p.yaml']; main.main()"
    )
    for debug in (False, True):
        env = {**penstock.env, **({"PENSTOCK_DEBUG": "1"} if debug else {})}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=penstock.directory, env=env, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "ZeroDivisionError: division by zero" in done.stderr
        assert ("Traceback" in done.stderr) is debug
        assert ("hint: PENSTOCK_DEBUG=1 shows the traceback" in done.stderr) is not debug


def test_validate_quickly_tells_all_problems_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "kind: Pipeline\nmetadata: {name: A}\n"
        "spec: {source: {ref: numbers}, sinks: [{ref: gone}, {type: drop, colour: red}]}\n"
        "---\nkind: Source\nmetadata: {name: Numbers}\nspec: {type: generate, rate: 1}\n"
    )
    (tmp_path / "b.yml").write_text("kind: Pipeline\nmetadata: {name: a}\nspec: {sinks: []}\n")
    result = runner.invoke(app, ["validate", "--quick", "."])
    assert result.exit_code == 3
    for told in (
        "a.yaml: Pipeline 'A'",
        "error[unknown_reference] spec.sinks[0].ref: there is no sink 'gone'",
        "error[unknown_field] spec.sinks[1].colour:",
        "b.yml: Pipeline 'a'",
        "error[missing_field] spec.source:",
        "error[duplicate_document] metadata.name:",
        "3 documents,",
    ):
        assert told in result.stderr, result.stderr

    shown = json.loads(runner.invoke(app, ["validate", "--quick", ".", "--json"]).stdout)
    assert not shown["valid"]
    assert [(d["file"], d["name"], d["valid"]) for d in shown["documents"]] == [
        ("a.yaml", "A", False),
        ("a.yaml", "Numbers", True),
        ("b.yml", "a", False),
    ]


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "kind: Sink\nmetadata: {name: S}\nspec: {type: spark, format: parquet, options: {password: hush}}\n"
    )
    result = runner.invoke(app, ["validate", "--quick", "a.yaml"])
    assert result.exit_code == 0, result.stderr
    assert "warning[plain_secret] spec.options.password:" in result.stderr


def test_kinds_can_be_written_in_many_ways() -> None:
    assert tuple(PLURALS) == KINDS
    for word, kind in {"p": "Pipeline", "Pipelines": "Pipeline", "task": "Task", "so": "Source"}.items():
        assert kind_of(word) == kind
    for word in ("", "s", "things"):
        with pytest.raises(Usage):
            kind_of(word)


def test_numbers_and_moments_read_well() -> None:
    assert (plural(1, "batch"), plural(1200, "batch"), plural(2, "event")) == (
        "1 batch",
        "1,200 batches",
        "2 events",
    )
    assert (rate(0.0), rate(2.5), rate(12345.6)) == ("0/s", "2.5/s", "12,346/s")
    assert when(time.time() - 7300) == "2 h ago"
    assert when(None) == "-"


def test_completion_is_silent_without_a_server(penstock: Penstock) -> None:
    penstock.env["PENSTOCK_SERVER"] = "http://127.0.0.1:9"
    assert completed(penstock, "penstock pause ") == ""
    assert completed(penstock, "penstock get pi") == "pipelines"
