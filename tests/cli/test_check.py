from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Command

DOCUMENT = """\
kind: Pipeline
metadata: {name: copy}
spec:
  source: {type: file, path: in, format: text}
  sinks: [{type: file, path: out, format: text}, {id: other, type: drop}]
"""


def test_check_tests_every_connection(with_spark: Command, tmp_path: Path) -> None:
    (tmp_path / "copy.yaml").write_text(DOCUMENT)
    failed = with_spark("check", "copy.yaml", "--json")
    assert failed.exit_code == 1
    told = json.loads(failed.stdout)
    assert not told["ok"]
    assert [problem["path"] for each in told["connectors"] for problem in each["problems"]] == [
        "spec.source.path"
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text("one\n")
    done = with_spark("check", "copy.yaml")
    assert done.exit_code == 0, done.stderr
    assert "source 'file': ok" in done.stderr
    assert "one.txt" in done.stderr
    assert "sink 'drop': no connection test available" in done.stderr
    assert "3 connections, 0 problems" in done.stderr
