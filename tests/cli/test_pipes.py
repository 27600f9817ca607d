"""`penstock run` between pipes: events in on standard input, events out on standard output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.control.documents.judge import refuse_pipes
from penstock.engine.plan.analysis import analyse, offline
from tests.cli.commands import PATIENCE_S, Penstock, family_of, wait_for
from tests.cli.conftest import Command

PIPELINE = """\
kind: Pipeline
metadata: {name: pipe}
spec:
  source: {type: stdin, format: json, schema: 'id BIGINT, name STRING'}
  processors:
    - {type: filter, where: id <> 2}
  sinks:
    - {type: stdout, format: json}
"""
ENDLESS = """\
kind: Pipeline
metadata: {name: endless}
spec:
  source: {type: generate, row: {id: seq}}
  batch: {max_events: 1000, max_inflight: 1}
  sinks: [{type: stdout}]
"""


@pytest.mark.slow
def test_events_are_piped_in_and_out(penstock: Penstock) -> None:
    file = penstock.write("pipe.yaml", PIPELINE)
    given = '{"id": 1, "name": "ü"}\n{"id": 2, "name": "b"}\nnot json\n\n{"id": 3, "name": "c"}'
    done = penstock("run", file, stdin=given)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": 1, "name": "ü"}, {"id": 3, "name": "c"},
    ]  # fmt: skip
    assert "completed pipe: 4 events read" in done.stderr
    assert "1 event could not be processed" in done.stderr

    again = penstock("run", file, stdin='{"id": 4, "name": "d"}\n')
    assert again.returncode == 0, again.stderr
    assert [json.loads(line)["id"] for line in again.stdout.splitlines()] == [4], "earlier events came again"


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_closes_the_pipe_ends_the_run(penstock: Penstock, unbuffered: str) -> None:
    penstock.env["PYTHONUNBUFFERED"] = unbuffered
    process = penstock.start("run", penstock.write("endless.yaml", ENDLESS))
    head = subprocess.run(
        ["head", "-1"], stdin=process.stdout, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert head.stdout == '{"id":0}\n'
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr is not None
    told = process.stderr.read()
    assert "stopped endless" in told
    assert "Traceback" not in told
    assert "Broken" not in told


@pytest.mark.slow
def test_lines_that_were_read_survive_a_kill(penstock: Penstock) -> None:
    text = PIPELINE.replace("{type: stdout, format: json}", "{type: file, path: out, format: json}")
    file = penstock.write(
        "pipe.yaml", text.replace("spec:", "spec:\n  batch: {max_events: 50, max_inflight: 1}")
    )
    process = penstock.start("run", file)
    assert process.stdin is not None
    lines = [json.dumps({"id": number, "name": "x"}) for number in range(10, 510)]
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    out = penstock.directory / "out"
    wait_for("the first batch", lambda: any(out.rglob("*.json")))
    for member in family_of(process.pid):
        os.kill(member.pid, signal.SIGKILL)
    process.wait()

    done = penstock("run", file)  # nothing is piped in: what the first run has read is processed
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)["id"] for each in out.rglob("*.json") for line in each.read_text().splitlines()]
    assert sorted(found) == list(range(10, 510))


def test_the_document_and_the_events_cannot_both_be_standard_input(in_process: Command) -> None:
    done = in_process("run", "-", "--json", stdin=PIPELINE)
    assert done.exit_code == 2, done.output
    assert json.loads(done.stdout)["errors"][0]["code"] == "stdin_taken"
    assert {each["code"] for each in json.loads(done.stdout)["errors"]} == {"stdin_taken", "stdout_taken"}


def test_two_sinks_cannot_both_write_to_standard_output(in_process: Command, tmp_path: Path) -> None:
    sinks = "    - {type: stdout, format: json}\n"
    (tmp_path / "two.yaml").write_text(PIPELINE.replace(sinks, sinks + "    - {type: stdout, id: b}\n"))
    done = in_process("run", "two.yaml")
    assert done.exit_code == 2, done.output
    assert "two sinks write to standard output" in done.stderr


def test_a_server_refuses_pipes_with_a_hint() -> None:
    from penstock.specs.text import read_all

    (document,) = read_all(PIPELINE)
    lookup, known = offline([document])
    analysis = analyse(document, lookup, known)
    assert analysis.valid, "`penstock validate` takes it: it can be run"
    refused = refuse_pipes(document, analysis)
    assert not refused.valid
    assert [problem.path for problem in refused.errors] == ["spec.source.type", "spec.sinks[0].type"]
    assert all("penstock run" in (problem.hint or "") for problem in refused.errors)
    sink = {"kind": "Sink", "metadata": {"name": "out"}, "spec": {"type": "stdout", "stream": "x"}}
    assert [problem.path for problem in refuse_pipes(sink, analysis).errors] == ["spec.type"]
    other = {"kind": "Sink", "metadata": {"name": "out"}, "spec": {"type": "console"}}
    assert refuse_pipes(other, analysis) is analysis
