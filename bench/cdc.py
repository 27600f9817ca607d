"""Changes of a PostgreSQL table, from a backlog in its WAL to a stream and to files; all rows are checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from penstock.connectors.postgres_cdc.source import PostgresCdcSource
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace
from penstock.streams.pool import Pool
from penstock.streams.storage import Producer
from tests.postgres_cdc_server import ReplicatingPostgres, replicating_postgres

EVENTS = 1_000_000
IN_TRANSACTION = 1_000
PATIENCE_S = 300.0

TABLE = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount numeric(10,2), placed timestamptz,
  status text, note text)
"""
INSERT = """
INSERT INTO orders SELECT i, 'customer ' || i % 1000, (i % 100000) / 100.0,
  '2026-01-01'::timestamptz + i * interval '1 second', 'open', md5(i::text)
FROM generate_series({}, {}) i
"""
COLUMNS = "id, customer, amount, placed, status, note"
CONNECTED = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'penstock/%'"
SLOTS = ("nowhere", "stream", "files", "files_again")


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """Read one backlog in several ways, each from its own slot. Returns the lines of a report."""
    with replicating_postgres() as server, server.database() as database:
        with server.connect(database) as sql:
            sql.execute(TABLE)
            sql.execute("CREATE PUBLICATION orders FOR TABLE orders")
            for slot in SLOTS:
                sql.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
            print(f"inserting {count:,} rows…", file=sys.stderr)
            for first in range(0, count, IN_TRANSACTION):
                sql.execute(INSERT.format(first, min(first + IN_TRANSACTION, count) - 1))
            (end,) = sql.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
            query = f"COPY (SELECT {COLUMNS} FROM orders) TO STDOUT WITH (FORMAT csv)"
            with (work / "expected.csv").open("wb") as file, sql.cursor().copy(query) as copy:
                for block in copy:
                    file.write(block)
        ways: dict[str, Callable[[], tuple[float, float]]] = {
            "pg_recvlogical, written to nowhere": lambda: _nowhere(server, database, end),
            "into the input stream": lambda: _to_stream(server, database, work, count),
            "penstock run, to parquet files": lambda: _to_files(server, database, work, count, "files"),
            "penstock run again (A/A)": lambda: _to_files(server, database, work, count, "files_again"),
            "penstock run, snapshot of the table": lambda: _to_files(server, database, work, count, None),
        }
        lines = []
        for name, run in ways.items():
            whole, steady = run()
            print(f"{name}: {whole:.1f} s, {steady:.1f} s of them connected", file=sys.stderr)
            lines.append(f"| {name} | {whole:.1f} | {count / steady:,.0f} |")
    return [
        f"{count:,} inserted rows in transactions of {IN_TRANSACTION:,}, six columns; the server is on the "
        "same machine. Events per second are counted from the connection of the source to the last row in "
        "the files, without the start of Spark. All rows of the files are compared with the table.",
        "",
        "| | seconds, whole process | events/s |",
        "|---|---|---|",
        *lines,
    ]


def _nowhere(server: ReplicatingPostgres, database: str, end: str) -> tuple[float, float]:
    """PostgreSQL's own client, which decodes nothing: the maximum rate of the server."""
    command = [
        server.binaries / "pg_recvlogical", "-d", server.url(database), "--slot", "nowhere", "--start",
        "--endpos", end, "-o", "proto_version=1", "-o", "publication_names=orders", "-f", "/dev/null",
    ]  # fmt: skip
    began = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began, time.monotonic() - began


def _to_stream(server: ReplicatingPostgres, database: str, work: Path, count: int) -> tuple[float, float]:
    """The receiver and the log alone, as a flow uses them."""
    source = _source(server, database, "stream").pinned(None, None)  # type: ignore[arg-type]
    spec = StreamSpec(schema=source.input_schema(source.model_dump(by_alias=True)))
    place = StreamPlace("in", spec, StreamHome(work / "streams", work / "memory").ensure("in", "1", spec))
    log = Pool().log(place.directory)
    site = Site("pipeline:bench", 1, lambda name: place, "in", policy=UNRESTRICTED)
    receiver = source.receiver(site)
    receiver.open(None)
    began, number = time.monotonic(), 0
    while log.bounds().next < count:
        received = receiver.receive(0.5)
        if received is not None:
            producer = Producer("bench", number, position=received.position)
            log.append(received.events, producer=producer, tx=received.tx)
            receiver.acknowledge(received)
            number += 1
    taken = time.monotonic() - began
    receiver.close()
    return taken, taken


def _to_files(
    server: ReplicatingPostgres, database: str, work: Path, count: int, slot: str | None
) -> tuple[float, float]:
    """A whole pipeline."""
    out, name = work / (slot or "snapshot"), slot or "snapshot"
    source = _source(server, database, slot).model_dump(by_alias=True, exclude_defaults=True)
    query = (
        "SELECT op, after.id, after.customer, after.amount, after.placed, after.status, after.note FROM input"
    )
    document = {
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "source": {"type": "postgres_cdc", **source},
            "processors": [{"type": "sql", "query": query}],
            "sinks": [{"type": "file", "path": str(out), "format": "parquet"}],
        },
    }
    (work / f"{name}.json").write_text(json.dumps(document))
    command = ["penstock.cli.main", "run", str(work / f"{name}.json"), "--home", str(work / f"home-{name}")]
    began = time.monotonic()
    with (work / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=log, stderr=log, start_new_session=True
        )
    connected: list[float] = []
    threading.Thread(target=_note_connection, args=(server, process, connected), daemon=True).start()
    try:
        _, last, _ = awaited(process, out, count)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    _check(out, work / "expected.csv", "r" if slot is None else "c")
    return last - began, last - connected[0]


def _note_connection(
    server: ReplicatingPostgres, process: subprocess.Popen[bytes], connected: list[float]
) -> None:
    """Record when the source connects to the server."""
    with server.connect() as sql:
        while process.poll() is None and not sql.execute(CONNECTED).fetchall():
            time.sleep(0.05)
    connected.append(time.monotonic())


def _source(server: ReplicatingPostgres, database: str, slot: str | None) -> PostgresCdcSource:
    given = {"url": server.url(database), "tables": ["public.orders"]}
    if slot is None:
        return PostgresCdcSource(**given, snapshot="only")
    return PostgresCdcSource(**given, snapshot="never", publication="orders", slot=slot)


def awaited(process: subprocess.Popen[bytes], out: Path, count: int) -> tuple[float, float, int]:
    """When the first events and when all events were in files, and the number of first events."""
    sizes: dict[Path, int] = {}
    first, early, until = 0.0, 0, time.monotonic() + PATIENCE_S
    while True:
        for file in out.rglob("*.parquet"):
            if file not in sizes and not file.name.startswith((".", "_")):
                sizes[file] = pq.ParquetFile(file).metadata.num_rows
        found, now = sum(sizes.values()), time.monotonic()
        if found and not first:
            first, early = now, found
        if found >= count:
            return first, now, early
        if now > until or (process.poll() is not None and process.returncode):
            raise SystemExit(f"{found} of {count} events came out")
        time.sleep(0.1)


def _check(out: Path, expected: Path, op: str) -> None:
    """Compare all rows with those of the table."""
    kinds = (
        "{'id': 'BIGINT', 'customer': 'VARCHAR', 'amount': 'DECIMAL(10,2)', 'placed': 'TIMESTAMPTZ', "
        "'status': 'VARCHAR', 'note': 'VARCHAR'}"
    )
    table = f"SELECT * FROM read_csv('{expected}', header = false, columns = {kinds})"
    found = f"SELECT {COLUMNS} FROM read_parquet('{out}/**/*.parquet') WHERE op = '{op}'"
    with duckdb.connect() as sql:
        sql.execute("SET TimeZone = 'UTC'")
        for one, other in ((table, found), (found, table)):
            left = sql.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()[0][0]
            if left:
                raise SystemExit(f"{left} rows differ from the table")
