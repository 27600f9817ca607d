from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.cli.files import Found
from penstock.cli.run import SMALL_BYTES, is_short
from tests.cli.commands import Penstock, family_of, interrupt, wait_for
from tests.cli.conftest import Command

FINITE = """\
kind: Pipeline
metadata: {name: numbers}
spec:
  source: {type: generate, count: 300, row: {id: seq}}
  sinks:
    - {id: lake, type: file, path: out, format: json}
    - {type: console, max_rows: 1000}
"""

STEADY = """\
kind: Pipeline
metadata: {name: steady}
spec:
  source: {type: generate, rate: 2000, COUNT row: {id: seq}}
  batch: {max_events: 200, max_ms: 50, max_inflight: 1}
  sinks:
    - {type: file, path: out, format: json}
"""


def ids(directory: Path) -> list[int]:
    """The ids in all files of a directory, in order."""
    files = directory.rglob("*.json")
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_a_run_completes_then_has_nothing_to_do_then_begins_anew(
    penstock: Penstock, with_spark: Command
) -> None:
    file = penstock.write("numbers.yaml", FINITE)

    first = penstock("run", file)
    assert first.returncode == 0, first.stderr
    assert [event["id"] for event in lines(first.stdout)] == list(range(300))
    assert "completed numbers: 300 events read" in first.stderr
    assert "lake: 300 events delivered (exactly-once)" in first.stderr

    second = with_spark("run", file, "--json")
    assert second.exit_code == 0, second.stderr
    summary = lines(second.stdout)[-1]
    assert (summary["type"], summary["outcome"], summary["input_events"]) == ("summary", "completed", 0)
    assert summary["resumed"]
    assert ids(penstock.directory / "out") == list(range(300))

    third = with_spark("run", "-", "--fresh", stdin=FINITE.replace("path: out", "path: again"))
    assert third.exit_code == 0, third.stderr
    assert "earlier progress deleted" in third.stderr
    assert "no new events" not in third.stderr
    assert ids(penstock.directory / "again") == list(range(300))


@pytest.mark.slow
def test_ctrl_c_drains_and_a_later_run_goes_on_even_after_a_kill(
    penstock: Penstock, with_spark: Command
) -> None:
    endless = penstock.write("endless.yaml", STEADY.replace("COUNT", ""))
    out = penstock.directory / "out"

    process = penstock.start("run", endless)
    wait_for("output", lambda: ids(out))
    family = family_of(process.pid)
    stdout, stderr = interrupt(process, signal.SIGINT)
    assert process.returncode == 0, stderr
    assert stdout == ""
    assert "stopped steady:" in stderr
    assert not psutil.wait_procs(family, timeout=60)[1], "nothing may be left running"
    drained = ids(out)
    assert drained == list(range(len(drained)))

    process = penstock.start("run", endless)
    wait_for("more output", lambda: len(ids(out)) > len(drained))
    for member in family_of(process.pid):
        member.kill()
    process.communicate()

    count = len(ids(out)) + 3000
    finite = penstock.write("finite.yaml", STEADY.replace("COUNT", f"count: {count},"))
    done = with_spark("run", finite)
    assert done.exit_code == 0, done.stderr
    assert ids(out) == list(range(count)), "all of it, and nothing twice"


def test_two_runs_of_one_pipeline_do_not_meet(penstock: Penstock, in_process: Command) -> None:
    from penstock.cli.lock import Lock

    file = penstock.write("numbers.yaml", FINITE)
    with Lock(penstock.home / "flows" / "numbers" / "run" / "lock", "it"):
        done = in_process("run", file)
    assert done.exit_code == 1
    assert "error[locked] pipeline 'numbers' is in use by pid" in done.stderr.replace("\n", " ")


@pytest.mark.slow
def test_a_run_that_fails_says_why(
    penstock: Penstock, with_spark: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    penstock.write("in/a.json", '{"id": "many"}\n')
    file = penstock.write(
        "strict.yaml",
        """\
kind: Pipeline
metadata: {name: strict}
spec:
  source: {type: file, path: in, format: json, schema: id BIGINT, finite: true, malformed: fail}
  restart: {policy: never}
  sinks: [{type: drop}]
""",
    )
    done = with_spark("run", file)
    assert done.exit_code == 1
    assert "failed strict: 0 events read" in done.stderr
    assert "error[" in done.stderr
    assert "Traceback" not in done.stderr + capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (FINITE.replace("count: 300", "count: many"), 3, "error[wrong_type] spec.source.count: "),
        (FINITE.replace("path: out", "path: '${NOWHERE}'"), 3, "error[unset_variable] spec.sinks[0].path: "),
        (
            FINITE.replace("{type: console", "{ref: nowhere} #"),
            3,
            "error[unknown_reference] spec.sinks[1].ref: ",
        ),
        (FINITE + "---\n" + FINITE.replace("numbers", "more"), 2, "choose with --name: numbers, more"),
        ("kind: Stream\nmetadata: {name: s}\n", 3, "error[no_pipeline]"),
        ("kind: Pipline\nmetadata: {name: s}\n", 3, "error[unknown_kind] kind: "),
        ("{", 3, "error[not_yaml]"),
        ("", 3, "error[no_documents]"),
    ],
)
def test_what_cannot_run_is_told_before_spark_starts(
    in_process: Command, text: str, code: int, told: str
) -> None:
    done = in_process("run", "-", stdin=text)
    assert (done.exit_code, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Spark" not in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_are_json_too(penstock: Penstock) -> None:
    done = penstock("run", "-", "--json", stdin=FINITE.replace("count: 300", "count: many, rate: -1"))
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert {error["path"] for error in told["errors"]} == {"spec.source.count", "spec.source.rate"}
    assert told["code"] == told["errors"][0]["code"]


STREAMS = """\
kind: Stream
metadata: {name: numbers}
spec: {schema: "id BIGINT"}
---
kind: Source
metadata: {name: made}
spec: {type: generate, count: 500, row: {id: seq}, stream: numbers}
---
kind: Pipeline
metadata: {name: reader}
spec:
  source: {type: stream, stream: numbers}
  sinks: [{type: file, path: out, format: json}]
"""


@pytest.mark.slow
def test_streams_of_a_file_are_kept_from_run_to_run(penstock: Penstock, with_spark: Command) -> None:
    file = penstock.write("streams.yaml", STREAMS)
    out = penstock.directory / "out"
    filled = with_spark("run", file, "--name", "made")
    assert filled.exit_code == 0, filled.stderr
    assert "500 events delivered (exactly-once)" in filled.stderr

    def ctrl_c() -> None:
        wait_for("output", lambda: len(ids(out)) == 500)
        os.kill(os.getpid(), signal.SIGINT)

    person = threading.Thread(target=ctrl_c)
    person.start()
    read = with_spark("run", file)
    person.join()
    assert read.exit_code == 0, read.stderr
    assert ids(out) == list(range(500))


def test_what_is_sent_to_a_server_needs_one(in_process: Command) -> None:
    done = in_process(
        "run", "-", stdin=FINITE.replace("{type: generate, count: 300, row: {id: seq}}", "{type: http}")
    )
    assert done.exit_code == 3
    assert "error[needs_server] spec.source: " in done.stderr


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ({"type": "file", "path": "small.json", "format": "json", "finite": True}, True),
        ({"type": "file", "path": "small.json", "format": "json"}, False),
        ({"type": "file", "path": "large.json", "format": "json", "finite": True}, False),
        ({"type": "file", "path": "missing.json", "format": "json", "finite": True}, False),
        ({"type": "file", "path": ".", "format": "json", "finite": True}, False),
        ({"type": "file", "path": "nul\0", "format": "json", "finite": True}, False),
        ({"type": "generate", "count": 1}, False),
        ("nonsense", False),
        (None, False),
    ],
)
def test_only_a_run_over_one_small_file_is_known_to_be_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any, short: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.json").write_text("{}")
    with (tmp_path / "large.json").open("wb") as large:
        large.truncate(SMALL_BYTES)
    stream = Found("file", {"kind": "Stream", "metadata": {"name": "s"}})
    document = {"kind": "Pipeline", "metadata": {"name": "p"}, "spec": {"source": source}}
    assert is_short([stream, Found("file", document)]) is short
    assert not is_short([Found("file", document), Found("file", document)])
    assert not is_short([Found("file", "text"), Found("file", {"spec": 7})])
