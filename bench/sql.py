"""Rows into tables: the writer of the `sql` sink, compared with the fastest plain way of each database."""

from __future__ import annotations

import re
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import csv

from bench.data import batch
from penstock.connectors.base import DeliveryId, Events
from penstock.connectors.sql.sink import SqlSink
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from tests.mariadb_server import PASSWORD, MariaDB, mariadb
from tests.servers import postgres

EVENTS, SIZE, ROUNDS = 600_000, 100_000, 3
FEWER = {"PostgreSQL": 1, "MariaDB": 4, "SQLite": 2}
"""The databases, each with the factor by which its number of rows is reduced."""

TYPES = "id BIGINT, {user} TEXT, country TEXT, amount DOUBLE PRECISION, at TEXT, ok BOOLEAN, note TEXT"
QUOTED = '"user"'


class _Rows(Events):
    def __init__(self, table: pa.Table) -> None:
        self.made = table

    def frame(self) -> Any:
        raise NotImplementedError

    def table(self) -> pa.Table:
        return self.made


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """The lines of a report."""
    rows = pa.Table.from_batches([batch(SIZE, first) for first in range(0, count, SIZE)])
    lines = [
        f"Batches of {SIZE:,} rows with seven columns ({rows.nbytes / count:.0f} bytes each in memory) into "
        f"a table without indexes, each committed; median of {ROUNDS}, one after the other in each round. "
        "The server is on the same machine. `upsert` has a primary key, and half of its rows are new.",
        "",
        "| | rows/s | to the plain way |",
        "|---|---|---|",
    ]
    with postgres() as url, mariadb() as server:
        for name, ways in (
            ("PostgreSQL", _postgres(re.sub(r"\+psycopg", "", url))),
            ("MariaDB", _mariadb(server, work)),
            ("SQLite", _sqlite(work / "bench.db")),
        ):
            data = rows.slice(0, count // FEWER[name])
            print(f"{name}…", file=sys.stderr)
            lines += _compared(name, ways, data)
    return lines


Way = Callable[[pa.Table], float]
"""Writes rows. Returns the rows per second."""


def _compared(name: str, ways: dict[str, Way], data: pa.Table) -> list[str]:
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            rates[way].append(run(data))
    medians = {way: statistics.median(found) for way, found in rates.items()}
    plain = next(iter(medians.values()))
    return [f"| {name}: {way} | {rate:,.0f} | {rate / plain:.2f} |" for way, rate in medians.items()]


def _through_sink(spec: dict[str, Any], data: pa.Table) -> float:
    """Write the rows in batches through the sink."""
    site = Site("pipeline:bench", 1, lambda _: None, "bench.in", policy=UNRESTRICTED)  # type: ignore[arg-type, return-value]
    sink = SqlSink.model_validate({"type": "sql", "table": "t", **spec})
    writer = sink.open(site)
    lineage = str(time.monotonic_ns())
    began = time.perf_counter()
    for number, first in enumerate(range(0, data.num_rows, SIZE)):
        done = writer.write(_Rows(data.slice(first, SIZE)), DeliveryId("bench", "sql", lineage, number))
        if list(done.rejected):
            raise SystemExit("rows were rejected")
    took = time.perf_counter() - began
    writer.close()
    return data.num_rows / took


def _postgres(url: str) -> dict[str, Way]:
    def fresh(types: str = TYPES) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t ({types.format(user=QUOTED)})")

    def copy(data: pa.Table) -> float:
        fresh()
        options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
        bodies = []
        for first in range(0, data.num_rows, SIZE):
            body = pa.BufferOutputStream()
            csv.write_csv(data.slice(first, SIZE), body, options)
            bodies.append(body.getvalue().to_pybytes())
        began = time.perf_counter()
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            for body in bodies:
                with cursor.copy("COPY t FROM STDIN (FORMAT csv)") as target:
                    target.write(body)
                connection.commit()
        return data.num_rows / (time.perf_counter() - began)

    def insert(data: pa.Table) -> float:
        fresh()
        return _through_sink({"url": url}, data)

    def narrow(data: pa.Table) -> float:
        fresh(TYPES.replace("BIGINT", "NUMERIC(12)"))
        return _through_sink({"url": url}, data)

    def upsert(data: pa.Table) -> float:
        fresh(TYPES + ", PRIMARY KEY (id)")
        _through_sink({"url": url}, data.slice(0, data.num_rows // 2))
        return _through_sink({"url": url, "mode": "upsert", "key": ["id"]}, data)

    return {
        "plain COPY of CSV that is ready": copy,
        "sink": insert,
        "sink, a column has another type": narrow,
        "sink, `upsert`": upsert,
    }


def _mariadb(server: MariaDB, work: Path) -> dict[str, Way]:
    spec = {"url": f"mysql://penstock@{server.address}/test", "password": PASSWORD}

    def fresh(types: str = TYPES) -> None:
        server.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({types.format(user='user')})", database="test")

    def load(data: pa.Table) -> float:
        fresh()
        file = work / "rows.csv"
        numbered = data.set_column(5, "ok", data.column("ok").cast(pa.int8()))
        parts = []
        for number, first in enumerate(range(0, data.num_rows, SIZE)):
            parts.append(file.with_suffix(f".{number}"))
            csv.write_csv(numbered.slice(first, SIZE), parts[-1], csv.WriteOptions(include_header=False))
        began = time.perf_counter()
        with server.connect("test", local_infile=True) as connection, connection.cursor() as cursor:
            for part in parts:
                cursor.execute(
                    f"LOAD DATA LOCAL INFILE '{part}' INTO TABLE t "
                    "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'"
                )
        return data.num_rows / (time.perf_counter() - began)

    def insert(data: pa.Table) -> float:
        fresh()
        return _through_sink(spec, data)

    def upsert(data: pa.Table) -> float:
        fresh(TYPES + ", PRIMARY KEY (id)")
        _through_sink(spec, data.slice(0, data.num_rows // 2))
        return _through_sink({**spec, "mode": "upsert", "key": ["id"]}, data)

    return {"LOAD DATA LOCAL of CSV that is ready": load, "sink": insert, "sink, `upsert`": upsert}


def _sqlite(file: Path) -> dict[str, Way]:
    spec = {"url": f"sqlite:///{file}"}

    def fresh(types: str = TYPES) -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t ({types.format(user='user')})")

    def executemany(data: pa.Table) -> float:
        fresh()
        columns = [column.to_pylist() for column in data.columns]
        rows = list(zip(*columns, strict=True))
        began = time.perf_counter()
        with closing(sqlite3.connect(file)) as connection:
            for first in range(0, len(rows), SIZE):
                connection.executemany(
                    "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows[first : first + SIZE]
                )
                connection.commit()
        return data.num_rows / (time.perf_counter() - began)

    def insert(data: pa.Table) -> float:
        fresh()
        return _through_sink(spec, data)

    return {"`executemany` of tuples that are ready": executemany, "sink": insert}
