"""Each step after each kind of source: a flow and a test run make the same of an event (invariant 8)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import offline
from penstock.engine.trials.result import TestResult
from penstock.engine.trials.samples import META
from penstock.engine.trials.trial import Bench, try_out
from penstock.frames.logs import LOGS
from tests.cli.commands import wait_for
from tests.flows import Streams, keeper, letters, pipeline, run, running
from tests.http_server import Said, http_server

COUNT = 12
COLUMNS = "id BIGINT, kind STRING, tags ARRAY<STRING>, payload STRING, at TIMESTAMP"
EVENTS: list[dict[str, Any]] = [
    {
        "id": n,
        "kind": "ab"[n % 2],
        "tags": ["x", "ab"[n % 2]],
        "payload": f'{{"x": {n}}}',
        "at": f"2026-01-01T00:{n:02}:00Z",
    }
    for n in range(COUNT)
]
GENERATED = {
    "id": "seq",
    "kind": "if(seq % 2 = 0, 'a', 'b')",
    "tags": "array('x', if(seq % 2 = 0, 'a', 'b'))",
    "payload": """concat('{"x": ', seq, '}')""",
    "at": "timestamp_seconds(1767225600 + 60 * seq)",
}
FILE = {"type": "file", "path": "<in>", "format": "json", "schema": COLUMNS, "finite": True}

UNKNOWN: dict[str, dict[str, Any]] = {
    "file": FILE,
    "generate": {"type": "generate", "count": COUNT, "row": GENERATED},
    "spark": {
        **{"type": "spark", "format": "json", "schema": COLUMNS, "finite": True},
        "options": {"path": "<in>"},
    },
    "strict file": {**FILE, "malformed": "fail"},
}
"""Sources that know nothing of an event beside its columns."""

KNOWN: dict[str, dict[str, Any]] = {
    "stream": {"type": "stream", "stream": "in", "until": "latest"},
    "http": {"type": "http", "schema": COLUMNS},
}
"""Sources that know the offset, the time, the key and the headers."""

ROUTE = {"type": "route", "rules": [{"when": "id % 3 = 0", "sinks": ["a"]}], "default": ["b"]}
SCRIPT = """
function processBatch(events) {
  for (const event of events) {
    event.payload = `${event.$meta.offset} ${event.$meta.key} ${event.$meta.headers.h}`
    if (event.id === 1) throw new Error('not one')
    if (event.id === 2) event.$meta.key = 'two'
    if (event.id > 3) {
      event.$meta.headers = {made: event.id}
      event.$meta.sink = event.kind
    }
  }
}
"""
NEW_EVENTS = """
function processBatch(events) {
  return events.flatMap(({id, kind}) => [{id, kind}, {id: id + 100, kind, $meta: {key: 'new', sink: 'b'}}])
}
"""
NEW_ROWS = """
def process_row(event):
    return [event, {**event, "id": event["id"] + 100}]
"""
NEW_TABLE = """
import pyarrow as pa

def process(table):
    return pa.concat_tables([table, table]).drop_columns(["$event"])
"""
OUTBOX = {"type": "outbox", "aggregate_type": "kind", "aggregate_id": "id", "schema": "x INT"}
WINDOW = {"type": "window", "time": "at", "size": "3m"}

SAMPLES = [{"rate": 0.9}, {"rate": 0.9, "by": "key"}, {"every": 2}]

STEPS: dict[str, list[dict[str, Any]]] = {
    "route, explode, sql": [
        {**ROUTE, "default": "all"},
        {"type": "explode", "field": "tags"},
        {
            "type": "sql",
            "query": "SELECT id, 6 DIV (id - 2) AS n, explode(array(tags, kind)) AS t FROM input",
        },
        ROUTE,
    ],
    "mask, throttle, validate, lookup, http": [
        {"type": "mask", "fields": [{"field": "payload", "method": "hash"}]},
        {"type": "throttle", "rate": 1000},
        {"type": "throttle", "rate": 0.001, "burst": COUNT, "mode": "drop"},
        {"type": "validate", "expectations": [{"name": "few", "where": "id < 9"}]},
        {"type": "lookup", "file": {"path": "<table>"}, "on": {"kind": "code"}, "columns": "name STRING"},
        {"id": "ask", "type": "http", "url": "<url>/{id}", "schema": "n INT"},
        ROUTE,
    ],
    "samples": [*({"type": "sample", **how} for how in SAMPLES), ROUTE],
    "outbox": [OUTBOX, {"type": "map", "set": {"id": "x"}}, ROUTE],
    "outbox with a route": [{**OUTBOX, "route": "{aggregate_type}"}],
    "javascript": [{"type": "javascript", "inline": SCRIPT}],
    "scripts that make events": [
        {"type": "javascript", "inline": NEW_EVENTS},
        {"type": "python", "inline": NEW_ROWS},
        {"type": "python", "inline": NEW_TABLE},
        ROUTE,
    ],
    "dedupe, events of a window": [
        {"type": "dedupe", "keys": ["kind"], "within": "4m", "time": "at"},
        {**WINDOW, "emit": "events"},
        ROUTE,
    ],
    "join, window": [
        {
            **{"id": "paid", "type": "join", "stream": "other", "on": {"id": "id"}, "within": "1h"},
            **{"time": "at", "stream_time": "at"},
        },
        {**WINDOW, "keys": ["kind"], "aggregates": {"id": "min(id)"}},
        ROUTE,
    ],
}
REMEMBER = ("dedupe, events of a window", "join, window")
OTHER_COLUMNS = "id BIGINT, at TIMESTAMP"
OTHER = [{"id": n, "at": EVENTS[n]["at"]} for n in (1, 3, 3)]


def pairs() -> Iterator[tuple[str, str]]:
    """Sources and steps: a source of either kind for each list of steps, and by night all of them.

    What remembers events has to see the end of its source, and what is sent by HTTP has none.
    """
    for n, step in enumerate(STEPS):
        known = [name for name in KNOWN if name != "http" or step not in REMEMBER]
        if os.environ.get("PENSTOCK_TEST_NIGHTLY"):
            yield from ((source, step) for source in (*UNKNOWN, *known))
        else:
            yield [*UNKNOWN][n % len(UNKNOWN)], step
            yield known[n % len(known)], step


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server(lambda asked: Said({"n": int(asked.path[1:]) * 10})) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize(("source", "step"), [*pairs()])
def test_a_flow_and_a_test_run_agree(
    spark: SparkSession, tmp_path: Path, url: str, source: str, step: str
) -> None:
    streams = Streams(tmp_path)
    for id in ("in", "test.in"):
        streams.make(id, schema=COLUMNS).append(batch_of(EVENTS, COLUMNS, keyed=True))
    streams.make("other", schema=OTHER_COLUMNS).append(batch_of(OTHER, OTHER_COLUMNS))
    streams.make("a"), streams.make("b")
    (tmp_path / "table.csv").write_text("code,name\na,Anna\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/events.json").write_text("\n".join(map(json.dumps, EVENTS)))
    names = {"<in>": str(tmp_path / "in"), "<table>": str(tmp_path / "table.csv"), "<url>": url}
    raw = pipeline(
        source=filled({**UNKNOWN, **KNOWN}[source], names),
        processors=filled(STEPS[step], names),
        sinks=[{"id": id, "type": "stream", "stream": id} for id in ("a", "b")],
    )
    tested = tried(spark, raw, url, keyed=source in KNOWN)
    site = replace(streams.site(), allow_python=True)
    if source == "http":
        with running(keeper(spark, raw, tmp_path / "ck", site=site)) as kept:
            wait_for("the batch", lambda: kept.state.ops.get("batches") == 1)
    else:
        state = run(spark, raw, tmp_path / "ck", site)
        assert state.outcome == "completed", state.error
    assert {id: stored(streams, id) for id in ("a", "b")} == {
        id: sorted(map(plain, events)) for id, events in tested.output.items()
    }
    assert sorted(
        (each["step"], each["code"], plain(json.loads(each["event"]))) for each in letters(streams)
    ) == sorted(
        (each.id, error.code, plain({**error.event, META: {}}))
        for each in tested.steps
        for error in each.errors
    )


def tried(spark: SparkSession, raw: dict[str, Any], url: str, *, keyed: bool) -> TestResult:
    """What a test run makes of the events."""
    meta = [{"key": f"k{event['id']}", "headers": {"h": str(event["id"])}} for event in EVENTS]
    samples = [{**e, META: known} for e, known in zip(EVENTS, meta, strict=True)] if keyed else EVENTS
    schemas = {"in": COLUMNS, "other": OTHER_COLUMNS, "a": None, "b": None}
    documents = [
        {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": ddl} if ddl else {}}
        for name, ddl in schemas.items()
    ]
    lookup, known = offline([raw, *documents])
    answers = {"ask": {f"{url}/{n}": {"n": n * 10} for n in range(COUNT)}, "paid": OTHER}
    asked = {id: answers[id] for part in raw["spec"]["processors"] if (id := part.get("id")) in answers}
    result = try_out(Bench(spark, lookup, known, allow_python=True), raw, samples, asked).result
    assert result.ok, result.errors
    return result


def filled(value: Any, names: dict[str, str]) -> Any:
    """A part of a document with names filled in."""
    text = json.dumps(value)
    for name, meant in names.items():
        text = text.replace(name, meant)
    return json.loads(text)


def batch_of(events: list[dict[str, Any]], ddl: str, *, keyed: bool = False) -> pa.RecordBatch:
    """Events as they are appended to a typed stream."""
    from penstock.streams.decode import decode
    from penstock.streams.events import payload_schema

    body = "\n".join(map(json.dumps, events)).encode()
    batch = decode(body, "application/x-ndjson", payload_schema(ddl)).batch
    if not keyed:
        return batch
    headers = [[("h", str(event["id"]))] for event in events]
    batch = batch.append_column("_key", pa.array([f"k{event['id']}".encode() for event in events]))
    return batch.append_column("_headers", pa.array(headers, pa.map_(pa.string(), pa.string())))


def stored(streams: Streams, id: str) -> list[str]:
    """The events of a raw stream."""
    rows = [
        row
        for chunk in LOGS.log(streams.place(id).directory).read(0)
        if chunk.batch is not None
        for row in chunk.batch.to_pylist()
    ]
    return sorted(
        plain(
            {
                **json.loads(row["value"]),
                META: {"key": (row.get("_key") or b"").decode(), "headers": dict(row.get("_headers") or ())},
            }
        )
        for row in rows
    )


def plain(event: dict[str, Any]) -> str:
    """An event as text to compare: without fields that are NULL, and of `$meta` the key and the headers."""
    columns = {name: value for name, value in event.items() if name != META and value is not None}
    meta = {name: value for name in ("key", "headers") if (value := event.get(META, {}).get(name))}
    return json.dumps([columns, meta], sort_keys=True).replace(".000Z", "Z")
