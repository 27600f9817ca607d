"""Changes of a MariaDB table, from a backlog in its binlog to a stream and to files; all rows are checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from bench.cdc import awaited
from penstock.connectors.mysql_cdc.source import MySqlCdcSource
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace
from penstock.streams.pool import Pool
from penstock.streams.storage import Producer
from tests.mariadb_server import PASSWORD, USER, MariaDB, mariadb

EVENTS = 1_000_000
IN_TRANSACTION = 1_000
BY_LIBRARY = 100_000
"""Events that the library reads: all events would take it minutes."""

TABLE = """
CREATE TABLE test.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40), amount DECIMAL(10,2),
  placed DATETIME(6), status ENUM('open','paid'), note VARCHAR(100)) CHARACTER SET utf8mb4
"""
INSERT = """
INSERT INTO test.orders SELECT seq, CONCAT('customer ', seq % 1000), (seq % 100000) / 100,
  '2026-01-01' + INTERVAL seq SECOND, 1 + seq % 2, MD5(seq) FROM seq_{}_to_{}
"""
COLUMNS = "id, customer, amount, placed, status, note"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """Read one backlog in several ways. Returns the lines of a report."""
    with mariadb() as server:
        server.run(TABLE)
        ((file, pos, *_),) = server.run("SHOW MASTER STATUS")
        print(f"inserting {count:,} rows…", file=sys.stderr)
        with server.connect("test") as connection, connection.cursor() as cursor:
            for first in range(0, count, IN_TRANSACTION):
                cursor.execute(INSERT.format(first, min(first + IN_TRANSACTION, count) - 1))
        start, few = f"file:{file}:{pos}", min(count, BY_LIBRARY)
        ways: dict[str, tuple[int, Callable[[], tuple[float, float]]]] = {
            f"mysql-replication alone, {few:,} rows": (few, lambda: _library(server, file, pos, few)),
            "into the input stream": (count, lambda: _to_stream(server, work, count, start)),
            "penstock run, to parquet files": (count, lambda: _to_files(server, work, count, start, "files")),
            "penstock run again (A/A)": (count, lambda: _to_files(server, work, count, start, "again")),
            "penstock run, snapshot": (count, lambda: _to_files(server, work, count, None, "snapshot")),
        }
        lines = []
        for name, (events, run) in ways.items():
            whole, steady = run()
            print(f"{name}: {whole:.1f} s, {steady:.1f} s of them reading", file=sys.stderr)
            lines.append(f"| {name} | {whole:.1f} | {events / steady:,.0f} |")
    return [
        f"{count:,} inserted rows in transactions of {IN_TRANSACTION:,}, six columns; the server is on the "
        "same machine. Events per second are counted from the first event at the target on, without the "
        "start of the JVM. All rows of the files are compared with the formula they were made by.",
        "",
        "| | seconds, whole process | events/s |",
        "|---|---|---|",
        *lines,
    ]


def _library(server: MariaDB, file: str, pos: int, count: int) -> tuple[float, float]:
    """Read rows of the same binlog with mysql-replication."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import WriteRowsEvent

    settings = {"host": "127.0.0.1", "port": server.port, "user": USER, "passwd": PASSWORD}
    stream = BinLogStreamReader(
        settings, server_id=77, resume_stream=True, log_file=file, log_pos=pos, blocking=True,
        only_events=[WriteRowsEvent], is_mariadb=True, enable_logging=False,
    )  # fmt: skip
    began, found = time.monotonic(), 0
    for event in stream:
        found += len(event.rows)
        if found >= count:
            break
    stream.close()
    return time.monotonic() - began, (time.monotonic() - began) * count / found


def _to_stream(server: MariaDB, work: Path, count: int, start: str) -> tuple[float, float]:
    """The receiver and the log alone, as a flow uses them."""
    source = MySqlCdcSource(**_fields(server, start)).pinned(None, None)  # type: ignore[arg-type]
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
            number += 1
    taken = time.monotonic() - began
    receiver.close()
    return taken, taken


def _to_files(server: MariaDB, work: Path, count: int, start: str | None, name: str) -> tuple[float, float]:
    """A whole pipeline."""
    out = work / name
    columns = ", ".join(f"after.{column.strip()}" for column in COLUMNS.split(","))
    document = {
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "source": {"type": "mysql_cdc", **_fields(server, start)},
            "processors": [{"type": "sql", "query": f"SELECT op, {columns} FROM input"}],
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
    try:
        first, last, early = awaited(process, out, count)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    _check(out, count, "r" if start is None else "c")
    return last - began, (last - first) * count / (count - early)


def _fields(server: MariaDB, start: str | None) -> dict[str, Any]:
    given = {"url": server.url(), "tables": ["test.orders"]}
    if start is None:
        return {**given, "snapshot": "only"}
    return {**given, "snapshot": "never", "position": start}


def _check(out: Path, count: int, op: str) -> None:
    """Compare all rows with the inserted rows."""
    wanted = f"""
        SELECT i::BIGINT, 'customer ' || i % 1000, ((i % 100000)::DECIMAL(10,2) / 100)::DECIMAL(10,2),
        TIMESTAMP '2026-01-01' + to_seconds(i), CASE WHEN i % 2 = 0 THEN 'open' ELSE 'paid' END,
        md5(i::VARCHAR) FROM range({count}) t(i)
    """
    found = f"SELECT {COLUMNS} FROM read_parquet('{out}/**/*.parquet') WHERE op = '{op}'"
    with duckdb.connect() as sql:
        for one, other in ((wanted, found), (found, wanted)):
            left = sql.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()[0][0]
            if left:
                raise SystemExit(f"{left} rows differ from the table")
