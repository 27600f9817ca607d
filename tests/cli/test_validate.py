from __future__ import annotations

import pytest

from tests.cli.commands import Penstock

GOOD = """\
kind: Pipeline
metadata: {name: good}
spec:
  source: {type: generate, rate: 1, row: {id: seq}}
  processors: [{type: sql, query: SELECT id + 1 AS next FROM input}]
  sinks: [{type: drop}]
"""


@pytest.mark.slow
def test_validate_finds_what_only_spark_can_know(penstock: Penstock) -> None:
    penstock.write("pipes/good.yaml", GOOD)
    penstock.write("pipes/bad.yaml", GOOD.replace("good", "bad").replace("id + 1", "idd + 1"))
    done = penstock("validate", "pipes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "pipes/bad.yaml: Pipeline 'bad'" in done.stderr
    assert "spec.processors[0].query: " in done.stderr
    assert "2 documents, 1 error, 0 warnings" in done.stderr
    assert "good" not in done.stderr
    assert "WARN" not in done.stderr, "Spark speaks to its own log"
