"""What `penstock drill` accepts and refuses, and what it makes of a user's documents."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.cli.drill.cluster import settings_file
from penstock.cli.drill.report import figures
from penstock.cli.drill.rounds import KINDS, plan_faults
from penstock.cli.drill.subjects import copied_subjects
from penstock.cli.files import Found
from penstock.settings import load
from tests.cli.conftest import Command

DOCUMENTS = """\
kind: Stream
metadata: {name: Orders raw}
spec: {schema: "id BIGINT, price DECIMAL(10,2), at TIMESTAMP"}
---
kind: Task
metadata: {name: clean}
spec: {input: orders_raw, processors: [{type: filter, where: "id > 0"}], outputs: [{stream: orders_raw}]}
---
kind: Pipeline
metadata: {name: Orders}
spec:
  source: {type: stream, stream: orders_raw}
  tasks: [clean]
  sinks: [{type: http, url: "http://example.org"}, {id: copy, type: drop, required: false}]
  commit_policy: {mode: required}
  dead_letters: orders_raw
"""


def found(text: str) -> list[Found]:
    return [Found("docs.yaml", raw) for raw in yaml.safe_load_all(text)]


def test_a_copy_keeps_the_steps_and_replaces_both_ends(tmp_path: Path) -> None:
    subjects = copied_subjects(found(DOCUMENTS), [])
    (copy,) = subjects.pipelines
    document = copy.document(tmp_path, finite=False)
    spec = document["spec"]
    assert spec["tasks"] == ["clean"]
    assert spec["source"]["type"] == "file"
    assert [(sink["id"], sink["type"]) for sink in spec["sinks"]] == [("http", "file"), ("copy", "file")]
    assert "dead_letters" not in spec
    assert subjects.others[0]["spec"] == {"processors": [{"type": "filter", "where": "id > 0"}]}, (
        "the task does not run by itself"
    )
    told = "\n".join(copy.replaced)
    for part in ("source stream: files", "sink http (http): JSON files", "commit_policy: left out"):
        assert part in told
    first, second = (json.loads(event) for event in copy.events(7, 2))
    assert (first["id"], second["id"]) == (7, 8)


def test_recorded_events_are_used_in_turns() -> None:
    (copy,) = copied_subjects(found(DOCUMENTS), ['{"id": 1}', '{"id": 2}']).pipelines
    assert copy.events(1, 3) == ['{"id": 2}', '{"id": 1}', '{"id": 2}']


def test_a_seed_repeats_the_faults() -> None:
    assert plan_faults(7, 50, 3, KINDS) == plan_faults(7, 50, 3, KINDS)
    assert plan_faults(7, 50, 3, KINDS) != plan_faults(8, 50, 3, KINDS)
    assert {fault.kind for fault in plan_faults(7, 50, 3, KINDS)} == set(KINDS)
    assert all(fault.leases > 1 for fault in plan_faults(7, 50, 3, KINDS))


def test_the_figures_of_takeovers() -> None:
    assert figures([]) == {}
    assert figures([float(i) for i in range(10, 0, -1)]) == {
        "count": 10,
        "min": 1.0,
        "median": 5.5,
        "p90": 9.0,
        "max": 10.0,
    }


def test_the_cluster_gets_no_setting_that_names_an_installation(tmp_path: Path) -> None:
    given = {
        "registry.url": "postgresql://prod/registry",
        "storage.url": "s3a://prod/checkpoints",
        "spark.master": "local[3]",
        "worker.lease_ms": 2000,
    }
    settings = load(given, env={}, cwd=tmp_path).settings
    written = tomllib.loads(settings_file(settings, tmp_path))
    assert "prod" not in json.dumps(written)
    assert written["spark"]["spark.master"] == "local[3]"
    assert written["worker"]["lease_ms"] == 2000
    assert written["policy"]["paths"][0] == str(tmp_path)


NO_SCHEMA = """\
kind: Pipeline
metadata: {name: Raw}
spec: {source: {type: http}, sinks: [{type: drop}]}
"""


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        (["--faults", "kil"], "unknown_fault", "--faults"),
        (["--events", "e.json"], "unused_events", "--events"),
        (["raw.yaml"], "no_schema", "spec.source"),
        (["stream.yaml"], "no_pipeline", None),
        (["docs.yaml", "--from", "http://127.0.0.1:1"], "two_inputs", "--from"),
        (["docs.yaml", "--events", "bad.json"], "invalid_events", "--events"),
        (["docs.yaml", "--events", "empty.json"], "no_events", "--events"),
        (["none.yaml"], "unreadable_file", None),
        (["--dir", "."], "not_empty", "--dir"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    arguments: list[str], code: str, path: str | None, in_process: Command, tmp_path: Path
) -> None:
    files: dict[str, Any] = {
        "docs.yaml": DOCUMENTS,
        "raw.yaml": NO_SCHEMA,
        "stream.yaml": DOCUMENTS.partition("---")[0],
        "bad.json": '{"id": 1}\n[2]\n',
        "empty.json": "\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = in_process("drill", *arguments, "--json")
    assert done.exit_code == 2, done.output
    problem = json.loads(done.stdout[done.stdout.index("{") :])
    assert (problem["code"], problem["path"]) == (code, path)
