"""Steps in Python one after the other, in a flow on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import offline
from penstock.engine.trials.trial import Bench, try_out
from tests.cli.commands import wait_for
from tests.flows import Streams, keeper, letters, pipeline, running
from tests.http_server import Said, http_server

VALUES = [
    b'{"id": 1, "country": "DE"}',
    b'{"id": 2',
    b"\xff\xfe",
    b'{"id": -3, "country": "DE"}',
    b'{"id": 4, "country": "XX"}',
    b'{"id": 5, "country": "FR"}',
    b'{"id": 6, "country": "FR"}',
]
CODE = """
def process_row(event):
    print("event", event["id"])
    if event["id"] == 5:
        raise ValueError("not five")
    return event
"""


def steps(tmp_path: Path, url: str) -> list[dict[str, Any]]:
    (tmp_path / "countries.csv").write_text("code,name\nDE,Germany\nFR,France\n")
    return [
        {"id": "read", "type": "decode", "format": "json", "schema": "id INT, country STRING"},
        {"id": "check", "type": "validate", "expectations": [{"name": "positive", "where": "id > 0"}]},
        {
            "id": "name",
            "type": "lookup",
            "file": {"path": str(tmp_path / "countries.csv")},
            "on": {"country": "code"},
            "columns": "name STRING",
            "missing": "dead_letter",
        },
        {"id": "slow", "type": "throttle", "rate": 1000},
        {"id": "own", "type": "python", "inline": CODE},
        {"id": "ask", "type": "http", "url": url + "/{id}", "into": "n", "schema": "n INT"},
        {"id": "write", "type": "encode", "format": "kv", "fields": ["id", "name", "n"]},
    ]


def test_a_flow(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    raw, out = streams.make("raw"), streams.make("out")
    raw.append(pa.RecordBatch.from_pydict({"value": pa.array(VALUES, pa.binary())}))
    with http_server(lambda asked: Said({"n": len(asked.path)})) as url:
        document = pipeline(
            source={"type": "stream", "stream": "raw", "position": "earliest"},
            processors=steps(tmp_path, url),
            sinks=[{"type": "stream", "stream": "out", "deadline_ms": 120_000}],
        )
        site = replace(streams.site(), allow_python=True)
        kept = keeper(spark, document, tmp_path / "checkpoint", site=site)
        with running(kept):
            wait_for("two events", lambda: out.bounds().next == 2, 240)
            wait_for("the letters", lambda: len(letters(streams)) == 5)
    (chunk,) = out.read(0)
    assert chunk.batch is not None
    assert chunk.batch.column("value").to_pylist() == [
        b'id=1 name=Germany n="{\\"n\\":2}"',
        b'id=6 name=France n="{\\"n\\":2}"',
    ]
    assert sorted((letter["step"], letter["code"], letter["offset"]) for letter in letters(streams)) == [
        ("check", "expectation_failed", "3"),
        ("name", "not_found", "4"),
        ("own", "python_error", "5"),
        ("read", "invalid_utf8", "2"),
        ("read", "malformed_json", "1"),
    ]


def test_a_test_run_asks_nobody(spark: SparkSession, tmp_path: Path) -> None:
    source = {"type": "file", "path": "nowhere", "format": "json", "schema": "value STRING"}
    document = pipeline(source=source, processors=steps(tmp_path, "http://127.0.0.1:1"))
    lookup, known = offline([document])
    bench = Bench(spark, lookup, known, allow_python=True)
    samples = [{"value": value.decode()} for value in VALUES[:1] + VALUES[5:]]
    result = try_out(bench, document, samples, {"ask": [{"n": 7}, {"status": 404}]}).result
    made = {step.id: step for step in result.steps}
    assert [event["value"] for event in made["write"].output] == ['id=1 name=Germany n="{\\"n\\":7}"']
    assert [error.code for error in made["own"].errors] == ["python_error"]
    assert [error.code for error in made["ask"].errors] == ["http_status"]
