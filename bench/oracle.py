"""The queries of Nexmark through Penstock, through Spark as batch SQL, and through DuckDB.

All three get the same events: Penstock as streams that are filled before it starts, Spark as Parquet files,
DuckDB as its own tables. The documents and the queries are those of `tests/oracle`; Spark runs the queries
for DuckDB in its own dialect. All three must return the same number of rows.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot

from tests.flows import Streams, run
from tests.oracle.events import Events, generate
from tests.oracle.nexmark import QUERIES, Query, database, write_side_input

EVENTS = 300_000
"""Events in all three streams together: 276,000 bids, 18,000 auctions, 6,000 people."""

FUNCTIONS = (
    "floor_to(t TIMESTAMP, s BIGINT) RETURNS TIMESTAMP "
    "RETURN timestamp_micros(unix_micros(t) div (s * 1000000) * (s * 1000000))",
    "near(one TIMESTAMP, other TIMESTAMP, s BIGINT) RETURNS BOOLEAN "
    "RETURN abs(unix_micros(one) - unix_micros(other)) <= s * 1000000",
)

Answer = Callable[[int], tuple[float, int]]
"""Runs a query for the nth time. Returns the seconds it took, and the number of rows."""


def measure(work: Path, events: int = EVENTS) -> list[str]:
    """Run each query twice in one Spark session; the second run counts. Returns the lines of a report."""
    from penstock.engine.runtime.session import open_session
    from penstock.settings import load

    home = work / "oracle"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    made = generate(events // 50)
    spark = open_session(load({"home": home}, env={}, cwd=home).settings)
    for name, batch in made.streams.items():
        pq.write_table(pa.table(batch), home / f"{name}.parquet")
        spark.read.parquet(str(home / f"{name}.parquet")).createOrReplaceTempView(name)
    write_side_input(home / "side_input.csv")
    spark.read.csv(
        str(home / "side_input.csv"), "key BIGINT, value STRING", header=True
    ).createOrReplaceTempView("side_input")
    for function in FUNCTIONS:
        spark.sql(f"CREATE TEMPORARY FUNCTION {function}")
    lines = [
        f"{made.fifties * 50:,} events of Nexmark in one Spark session; the second run of each query, in "
        "events a second of the streams that it reads.",
        "",
        "| query | Penstock, backlog | Spark, batch SQL | DuckDB | Penstock to Spark | |",
        "|---|---|---|---|---|---|",
    ]
    try:
        for name, query in QUERIES.items():
            lines.append(_row(spark, home, made, name, query))
            print(lines[-1], file=sys.stderr)
    finally:
        spark.stop()
    return lines


def _row(spark: Any, home: Path, events: Events, name: str, query: Query) -> str:
    read = sum(events.streams[stream].num_rows for stream in query.streams)
    answers: list[Answer] = [
        lambda number: _penstock(spark, home, f"{name}-{number}", events, query),
        lambda _: _spark(spark, query),
        lambda _: _duckdb(events, query),
    ]
    seconds, rows = zip(*map(_second, answers), strict=True)
    if len(set(rows)) > 1:
        raise SystemExit(f"{name}: Penstock, Spark and DuckDB answer with {rows} rows")
    rates = " | ".join(f"{read / each:,.0f}" for each in seconds)
    return f"| {name} | {rates} | {seconds[1] / seconds[0]:.2f} | {query.about} |"


def _second(answer: Answer) -> tuple[float, int]:
    answer(0)
    return answer(1)


def _penstock(spark: Any, home: Path, name: str, events: Events, query: Query) -> tuple[float, int]:
    """Run a pipeline from its start to its end, with all events in its streams."""
    job = query.job(home / "side_input.csv")
    streams = Streams(home / name)
    for stream, schema in job.schemas.items():
        streams.make(stream, schema=schema).append(events.streams[stream])
    began = time.monotonic()
    state = run(
        spark, job.document({"type": "drop"}, batch={}, until="latest"), home / name / "ck", streams.site()
    )
    seconds = time.monotonic() - began
    if state.outcome != "completed":
        raise SystemExit(f"{name}: {state.error}")
    return seconds, state.ops["sinks"]["drop"]["events"]


def _spark(spark: Any, query: Query) -> tuple[float, int]:
    (text,) = sqlglot.transpile(query.oracle, read="duckdb", write="spark")
    began = time.monotonic()
    rows = spark.sql(text).toArrow().num_rows
    return time.monotonic() - began, rows


def _duckdb(events: Events, query: Query) -> tuple[float, int]:
    with database(events.streams) as connection:
        began = time.monotonic()
        rows = connection.sql(query.oracle).to_arrow_table().num_rows
        return time.monotonic() - began, rows
