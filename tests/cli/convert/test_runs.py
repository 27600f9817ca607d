"""Converted pipelines that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.cli.convert.systems import convert_text
from penstock.engine.plan.analysis import analyse, offline
from tests.cli.conftest import Command

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())

ELSEWHERE = {"unknown_type", "unset_variable", "unreachable", "unknown_host", "path_not_found"}
"""Problems of this machine, which has not all connectors and none of the systems."""

RAW = """\
input:
  file: {paths: [in.jsonl], scanner: {lines: {}}}
pipeline:
  processors:
    - mapping: |
        root = this
        root.total = this.price * this.items.length()
        root.who.name = this.user.name.uppercase()
        root = if this.price < 0 { deleted() }
output:
  switch:
    cases:
      - check: this.total > 10
        output: {label: big, file: {path: big, codec: lines}}
      - output: {label: small, file: {path: small, codec: lines}}
"""


def rows(directory: Path) -> list[Any]:
    files = [*directory.rglob("*.json"), *directory.rglob("*.txt")]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_generate_map_and_write_files(with_spark: Command, tmp_path: Path) -> None:
    source = CORPUS / "bento" / "generate_to_file.yaml"
    done = with_spark("convert", str(source), "--out", "pipeline.yaml")
    assert done.exit_code == 1, done.stderr  # the file becomes a directory
    done = with_spark("run", "pipeline.yaml")
    assert done.exit_code == 0, done.stderr
    found = sorted(rows(tmp_path / "out.jsonl"), key=lambda row: row["id"])
    assert found == [
        {"id": number, "user": f"USER {number % 3}", "even": number % 2 == 0} for number in range(1, 21)
    ]


@pytest.mark.slow
def test_events_without_a_schema(with_spark: Command, tmp_path: Path) -> None:
    given = [
        {"price": 6, "items": [1, 2], "user": {"name": "ann"}, "odd": {"kept": [None, 1.5]}},
        {"price": 1, "items": [1], "user": {"name": "bob"}},
        {"price": -1, "items": [], "user": {"name": "eve"}},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(event) + "\n" for event in given))
    done = with_spark("convert", "-", "--out", "pipeline.yaml", "--lenient", stdin=RAW)
    assert done.exit_code == 0, done.stderr
    done = with_spark("run", "pipeline.yaml")
    assert done.exit_code == 0, done.stderr
    assert rows(tmp_path / "big") == [{**given[0], "total": 12, "who": {"name": "ANN"}}]
    assert rows(tmp_path / "small") == [{**given[1], "total": 1, "who": {"name": "BOB"}}]


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_steps_fit_the_columns_of_their_source(spark: SparkSession, path: Path) -> None:
    """What comes out is valid down to the columns, as far as they are known without the other systems."""
    result = convert_text(path.read_text(), path.stem)
    lookup, known = offline(result.documents)
    for document in result.documents:
        analysis = analyse(document, lookup, known, spark=spark)
        wrong = [str(problem) for problem in analysis.errors if problem.code not in ELSEWHERE]
        assert not wrong, wrong
