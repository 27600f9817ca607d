"""The commands against a real server whose worker judges documents but runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.control.documents.service import Service
from penstock.control.registry import Registry
from penstock.settings import load
from penstock.specs.text import to_yaml
from tests.api.kit import judging, pipeline, running, stream
from tests.cli.commands import Penstock, completed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("client")
    loaded = load({"home": home, "port": 0}, env={}, cwd=home)
    registry = Registry.open(loaded.settings.registry_url)
    service = Service(loaded, registry)
    with judging(service), running(service) as api:
        yield api.url
    registry.close()


@pytest.fixture(autouse=True)
def place(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER", server)
    monkeypatch.chdir(tmp_path)


def penstock(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def told(*arguments: str) -> Any:
    result = penstock(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write(name: str, *documents: Any) -> str:
    Path(name).write_text("---\n".join(map(to_yaml, documents)))
    return name


def test_apply_creates_updates_and_leaves_alone(tmp_path: Path) -> None:
    file = write("two.yaml", pipeline("Apply me"), stream("Apply stream"))
    first = penstock("apply", file)
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines() == [
        "created   stream Apply stream (two.yaml)",
        "created   pipeline Apply me (two.yaml)",
    ]
    assert [item["action"] for item in told("apply", file)["items"]] == ["unchanged", "unchanged"]

    write("two.yaml", pipeline("Apply me", source={"type": "generate", "rate": 20}), stream("Apply stream"))
    preview = penstock("apply", file, "--dry-run")
    assert "update    pipeline Apply me" in preview.stdout
    assert "~ spec.source.rate: 10 → 20" in preview.stdout
    assert "nothing was saved" in preview.stderr
    assert [item["action"] for item in told("apply", file)["items"]] == ["unchanged", "update"]

    assert "rate: 20" in penstock("get", "p", "apply_me", "-o", "yaml").stdout
    assert [each["revision"] for each in told("revisions", "Apply me")] == [2, 1]
    assert "-    rate: 10" in penstock("diff", "Apply me").stdout
    assert told("rollback", "Apply me", "1")["revision"] == 3
    assert told("get", "p", "Apply me")["spec"]["source"]["rate"] == 10


def test_apply_goes_on_after_a_refusal() -> None:
    write("bad.yaml", stream("Still saved"), stream("Bad", colour="red"), {"kind": "Stream", "metadata": {}})
    result = penstock("apply", "bad.yaml")
    assert result.exit_code == 3
    assert "created   stream Still saved (bad.yaml)" in result.stdout
    assert "failed    stream Bad (bad.yaml)" in result.stdout
    assert "error[unknown_field] spec.colour:" in result.stderr
    assert "error[missing_field] metadata.name:" in result.stderr


def test_what_get_prints_can_be_applied_again() -> None:
    penstock("apply", write("round.yaml", pipeline("Round trip")))
    printed = penstock("get", "pipelines", "-o", "yaml", "--search", "round trip").stdout
    result = penstock("apply", "-", stdin=printed)
    assert result.stdout == "unchanged pipeline Round trip (-)\n", result.output


def test_lists_can_be_filtered_and_printed_in_several_ways() -> None:
    for name in ("List b", "List a", "List c"):
        penstock(
            "apply",
            write("p.yaml", {**pipeline(name), "metadata": {"name": name, "labels": {"t": name[-1]}}}),
        )
    assert penstock("get", "p", "--search", "list ", "-o", "name").stdout.split("\n")[:3] == [
        "List a",
        "List b",
        "List c",
    ]
    assert penstock("get", "p", "--search", "list", "--sort", "-name", "-o", "name").stdout[:6] == "List c"
    assert penstock("get", "p", "--label", "t=b", "-o", "name").stdout == "List b\n"
    page = told("get", "p", "--search", "list", "--limit", "2")
    assert (len(page["items"]), page["total"]) == (2, 3)
    table = penstock("get", "p", "--search", "list", "--limit", "2")
    assert table.stdout.split()[:3] == ["NAME", "STATUS", "PHASE"]
    assert "2 of 3" in table.stderr
    assert "nothing found" in penstock("get", "p", "--status", "failed").stderr


def test_a_page_tells_who_uses_a_document_and_what_is_wrong() -> None:
    source = {"kind": "Source", "metadata": {"name": "Shared", "description": "for two"}, "spec": {}}
    source["spec"] = {"type": "generate", "rate": 1}
    penstock("apply", write("s.yaml", source, pipeline("User", source={"ref": "shared"})))
    page = penstock("describe", "source", "Shared").stdout
    assert "for two" in page
    assert "used by      pipeline User (spec.source.ref)" in page

    refused = penstock("delete", "source", "Shared", "--yes")
    assert refused.exit_code == 1
    assert "User" in refused.stderr
    assert "status       paused (idle)" in penstock("describe", "pipeline", "User").stdout


def test_deleting_asks_first() -> None:
    penstock("apply", write("d.yaml", pipeline("Delete me")))
    assert penstock("delete", "p", "Delete me").exit_code == 2
    done = penstock("delete", "p", "Delete me", "Nobody", "--yes")
    assert done.exit_code == 1
    assert done.stdout == "Delete me deleted\n"
    assert "error[not_found]" in done.stderr
    missing = penstock("get", "p", "Delete me")
    assert (missing.exit_code, missing.stdout) == (1, "")


def test_a_registry_can_be_carried_away_and_back(tmp_path: Path) -> None:
    penstock("apply", write("e.yaml", pipeline("Carried"), stream("Carried stream")))
    assert penstock("export", "-o", "all.yaml").exit_code == 0
    assert told("export")["kind"] == "Bundle"
    penstock("delete", "p", "Carried", "--yes")

    preview = told("import", "all.yaml", "--dry-run")
    assert not preview["applied"]
    assert [c["name"] for c in preview["changes"] if c["action"] == "create"] == ["Carried"]
    assert "create    pipeline Carried" in penstock("import", "all.yaml").stdout

    write("one.yaml", stream("Only one"))
    assert penstock("import", "one.yaml", "--mode", "replace").exit_code == 2
    assert penstock("import", "one.yaml", "--mode", "replace", "--yes").exit_code == 0
    assert penstock("get", "streams", "-o", "name").stdout == "Only one\n"
    assert penstock("import", "all.yaml").exit_code == 0


def test_actions_tell_the_status_or_the_reason() -> None:
    penstock("apply", write("l.yaml", pipeline("Lively")))
    stopped = penstock("stop", "Lively")
    assert stopped.stdout == "Lively stopped (idle)\n"
    refused = penstock("pause", "Lively", "Nobody")
    assert refused.exit_code == 1
    assert "error[invalid_transition]" in refused.stderr
    assert "error[not_found]" in refused.stderr


def test_all_that_runs_is_told_apart_by_its_kind() -> None:
    sink = {"kind": "Sink", "metadata": {"name": "Drain"}, "spec": {"type": "drop", "stream": "river"}}
    mould = {
        "kind": "Sink",
        "metadata": {"name": "Drain mould"},
        "spec": {"type": "drop"},
        "status": "active",
    }
    file = write("d.yaml", stream("River"), {**sink, "status": "paused"}, pipeline("Drain"), mould)
    assert penstock("apply", file).exit_code == 0
    assert {item["action"] for item in told("apply", file)["items"]} == {"unchanged"}

    assert told("stop", "sink/Drain", "Drain")["items"][0]["kind"] == "Sink"
    assert penstock("stop", "sinks/drain", "p/Drain").stdout == "Drain stopped (idle)\n" * 2
    refused = penstock("start", "sink/Drain mould", "task/Drain")
    assert refused.exit_code == 1
    assert "error[not_runnable] sink 'Drain mould' doesn't run on its own" in refused.stderr
    assert "error[not_found] there is no task 'Drain'" in refused.stderr
    for nothing in ("streams/River", "s/Drain", "thing/Drain"):
        assert penstock("stop", "Drain", nothing).exit_code == 2

    lines = [line.split() for line in penstock("get", "sinks", "--search", "drain").stdout.splitlines()]
    assert lines[0] == ["NAME", "TYPE", "STATUS", "PHASE", "REVISION", "UPDATED", "DESCRIPTION"]
    assert lines[1][:4] == ["Drain", "drop", "stopped", "idle"]
    assert lines[2][:5] == ["Drain", "mould", "drop", "-", "-"]
    assert penstock("get", "sinks", "--status", "stopped", "-o", "name").stdout == "Drain\n"
    assert "status       stopped (idle)" in penstock("describe", "sink", "Drain").stdout
    assert "status " not in penstock("describe", "sink", "Drain mould").stdout.split("revisions")[0]

    printed = penstock("get", "sinks", "-o", "yaml", "--search", "drain").stdout
    again = penstock("apply", "-", stdin=printed).stdout.splitlines()
    assert again == ["unchanged sink Drain (-)", "unchanged sink Drain mould (-)"]


def test_a_server_can_be_asked_for_its_judgement(server: str) -> None:
    penstock("apply", write("known.yaml", stream("Known")))
    bad = pipeline("Judged", dead_letters="known", sinks=[{"ref": "unknown"}])
    result = penstock("validate", write("j.yaml", bad), "--server", server)
    assert result.exit_code == 3
    assert "error[unknown_reference] spec.sinks[0].ref: there is no sink 'unknown'" in result.stderr
    assert "dead_letters: there is no" not in result.stderr


def test_what_is_no_penstock_is_recognised(server: str) -> None:
    result = penstock("get", "p", "--server", f"{server}/docs")
    assert result.exit_code == 1
    assert "error[" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_shell_completes_names_that_the_server_knows(server: str, tmp_path: Path) -> None:
    penstock("apply", write("c.yaml", pipeline("completed-one"), stream("completed-stream")))
    shell = Penstock(tmp_path)
    shell.env["PENSTOCK_SERVER"] = server
    assert completed(shell, "penstock pause compl") == "completed-one"
    assert completed(shell, "penstock describe streams compl") == "completed-stream"
    sink = {"kind": "Sink", "metadata": {"name": "completed-sink"}, "spec": {"type": "drop"}}
    penstock("apply", write("k.yaml", sink))
    assert completed(shell, "penstock stop sinks/compl") == "sinks/completed-sink"
    assert "sink/completed-sink" in completed(shell, "penstock stop si").split()
    assert completed(shell, "penstock stop thing/") == ""


@pytest.mark.parametrize("command", [["import"], ["apply", "--dry-run"]])
def test_problems_of_a_bundle_name_their_document(command: list[str]) -> None:
    file = write("bad.yaml", stream("Good one"), stream("Bad one", wrong=1))
    refused = penstock(*command, file)
    assert refused.exit_code == 3
    assert "error[unknown_field] spec.wrong: stream 'Bad one': " in refused.stderr
    assert "documents[" not in refused.stderr
