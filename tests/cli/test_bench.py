"""`penstock bench`: on a stream, on files, as a comparison; and nothing stays behind."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli.project import LIFE
from penstock.frames.logs import LOGS
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome
from penstock.streams.log import Log
from tests.cli.commands import Penstock
from tests.cli.conftest import Command

COLUMNS = "id BIGINT, amount DOUBLE"

ORDERS = """\
kind: Stream
metadata: {name: orders}
spec: {schema: "id BIGINT, amount DOUBLE"}
---
kind: Stream
metadata: {name: large}
spec: {schema: "id BIGINT, amount DOUBLE"}
---
kind: Pipeline
metadata: {name: large orders}
spec:
  source: {type: stream, stream: orders}
  processors:
    - {id: large, type: filter, where: amount >= 50}
  sinks:
    - {id: stream, type: stream, stream: large}
    - {id: lake, type: file, path: out, format: json}
"""

FILES = """\
kind: Pipeline
metadata: {name: lines}
spec:
  source: {type: file, path: in, format: json, schema: "id BIGINT"}
  processors:
    - {id: half, type: map, set: {half: id / 2}}
  sinks:
    - {type: file, path: out, format: json}
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, so that a test sees what is left in it."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def filled(penstock: Penstock, stream: str, count: int) -> Log:
    """A stream of the home directory, as `penstock run` makes it, with numbered orders."""
    home = StreamHome(penstock.home / "streams", penstock.home / "memory")
    log = LOGS.log(home.ensure(stream, LIFE, StreamSpec.model_validate({"schema": COLUMNS})))
    orders = {"id": list(range(count)), "amount": [float(n % 100) for n in range(count)]}
    log.append(pa.RecordBatch.from_pydict(orders))
    return log


def report(command: Command, *arguments: str) -> Any:
    done = command("bench", *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_last_events_of_a_stream_reach_no_sink(
    penstock: Penstock, with_spark: Command, temporary: Path
) -> None:
    log = filled(penstock, "orders", 1000)
    file = penstock.write("orders.yaml", ORDERS)
    found = report(with_spark, file, "--events", "400")

    assert (found["input"]["kind"], found["input"]["events"]) == ("recorded", 400)
    assert (found["events"], found["counted"], found["mismatches"]) == (400, 400, [])
    assert found["balance"] == {
        "events": 400, "made": 0, "out": 200, "letters": 0, "late": 0, "dropped": 200, "folded": 0
    }  # fmt: skip
    assert {"latestOffset", "compute", "deliver", "commitOffsets"} <= {s["name"] for s in found["stages"]}
    assert [(s["id"], s["events_in"], s["events_out"], s["ms"]) for s in found["steps"]] == [
        ("large", 400, 200, None)
    ]
    assert found["events_per_second"] > 0
    assert found["bottleneck"]["advice"]

    assert not (penstock.directory / "out").exists(), "the file sink was not written"
    assert not (penstock.home / "streams" / "large").exists(), "nor the stream"
    assert log.storage.cursors() == [], "the stream has no new reader"
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_stream_without_events_gets_generated_ones(
    penstock: Penstock, with_spark: Command, temporary: Path
) -> None:
    done = with_spark("bench", penstock.write("orders.yaml", ORDERS), "--events", "100")
    assert done.exit_code == 0, done.output
    assert "100 events generated from the schema" in done.stdout
    assert "100 in = 0 out + 0 letters + 0 late + 100 dropped" in done.stdout
    assert "bottleneck: " in done.stdout
    assert not (penstock.home / "streams").exists()


@pytest.mark.slow
def test_files_are_read_to_their_end_and_letters_are_counted(
    penstock: Penstock, with_spark: Command, temporary: Path
) -> None:
    penstock.write("in/a.json", '{"id": 1}\n{"id": 2}\n{"id": "three"}\n{"id": 4}\n')
    found = report(with_spark, penstock.write("lines.yaml", FILES))
    assert (found["input"]["kind"], found["counted"], found["events"]) == ("source", None, 4)
    assert (found["balance"]["out"], found["balance"]["letters"], found["mismatches"]) == (3, 1, [])
    assert "dead letters" in found["bottleneck"]["what"]
    assert not (penstock.directory / "out").exists()
    assert not (penstock.home / "streams").exists(), "the letters are gone, too"


@pytest.mark.slow
def test_two_versions_take_turns(penstock: Penstock, with_spark: Command, temporary: Path) -> None:
    log = filled(penstock, "orders", 200)
    first = penstock.write("first.yaml", ORDERS)
    second = penstock.write("second.yaml", ORDERS.replace(">= 50", ">= 90"))
    found = report(with_spark, first, "--against", second, "--rounds", "1")
    assert found["documents"] == ["first.yaml", "second.yaml"]
    out = {name: [run["balance"]["out"] for run in runs] for name, runs in found["runs"].items()}
    assert out == {"first": [100], "again": [100], "second": [20]}
    assert found["ratio"] > 0
    assert found["noise"] >= 1
    assert log.storage.cursors() == []


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(
    penstock: Penstock, with_spark: Command, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.bench.on_stop", lambda stop: stop())
    log = filled(penstock, "orders", 1000)
    done = with_spark("bench", penstock.write("orders.yaml", ORDERS))
    assert done.exit_code == 1
    assert "error[interrupted]" in done.stderr
    assert log.storage.cursors() == []
    assert list(temporary.iterdir()) == []


RAW = ORDERS.replace('{schema: "id BIGINT, amount DOUBLE"}', "{}").replace("amount >= 50", "value > 1")
ASKING = ORDERS.replace("filter, where: amount >= 50", 'http, url: "http://localhost:1/{id}"')


@pytest.mark.parametrize(
    ("text", "options", "code", "error"),
    [
        (ORDERS, ["--revision", "1"], 2, "no_revisions"),
        (ORDERS, ["--revision", "1", "--against", "other.yaml"], 2, "exclusive_options"),
        (ORDERS, ["--against", "missing.yaml"], 2, "unreadable_file"),
        (ORDERS, ["--name", "small orders"], 2, "unknown_pipeline"),
        (ORDERS.replace("where", "were"), [], 3, "unknown_field"),
        (RAW, [], 1, "no_events"),
        (ASKING, [], 2, "sends_requests"),
    ],
)
def test_bad_input(
    penstock: Penstock, with_spark: Command, text: str, options: list[str], code: int, error: str
) -> None:
    done = with_spark("bench", penstock.write("orders.yaml", text), *options)
    assert (done.exit_code, f"error[{error}]" in done.stderr) == (code, True), done.output


def test_a_name_needs_a_server(with_spark: Command) -> None:
    done = with_spark("bench", "orders", "--server", "http://127.0.0.1:1")
    assert (done.exit_code, "error[no_server]" in done.stderr) == (1, True), done.output


@pytest.mark.slow
def test_the_guide(penstock: Penstock, with_spark: Command, temporary: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "bench-your-pipeline.md").read_text()
    text = re.search(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert text is not None
    penstock.write("orders.yaml", text.group(1))
    penstock.write("edited.yaml", text.group(1).replace("> 50", "> 90"))
    lines = re.findall(r"^penstock (bench orders\.yaml.*)$", guide, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        done = with_spark(*shlex.split(line, comments=True), "--events", "100", "--rounds", "1")
        assert done.exit_code == 0, done.output
