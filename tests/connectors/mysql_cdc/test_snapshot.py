"""The snapshot of tables of a real MariaDB, without Spark."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import pytest

from penstock.connectors.mysql_cdc import snapshot as snapshot_module
from penstock.connectors.mysql_cdc.position import Position
from tests.mariadb_server import MariaDB
from tests.mysql_changes import Row, content, events, folded, opened, received, source_of

# The snapshot

KEYS = {
    "numbers": ("id BIGINT UNSIGNED", "id", lambda i: str(i * 3)),
    "text": ("id VARCHAR(20) COLLATE utf8mb4_general_ci", "id", lambda i: f"'k{i:03d}ä\\'s'"),
    "bytes": ("id VARBINARY(20)", "id", lambda i: f"x'{i:04x}ff00'"),
    "enum": ("a ENUM('z','a','m'), id INT", "a, id", lambda i: f"'{'zam'[i % 3]}', {i}"),
    "pair": ("a DATE, id DECIMAL(6,2)", "a, id", lambda i: f"'2024-01-0{1 + i % 9}', {i}.25"),
    "double": ("id DOUBLE", "id", lambda i: f"{i}e-7"),
    "float": ("id FLOAT", "id", lambda i: f"{i}.1"),
    "time": ("id TIME(3)", "id", lambda i: f"'-{i}:00:00.5'"),
    "stamp": ("id TIMESTAMP(6)", "id", lambda i: f"'2024-03-31 01:00:{i % 60:02d}.{i:06d}'"),
    "uuid": ("id UUID", "id", lambda i: f"'{i:08x}-0000-1000-8000-00000000{i:04x}'"),
    "bit": ("id BIT(20)", "id", str),
    "padded": ("id CHAR(8) CHARACTER SET latin1", "id", lambda i: f"'{i:x} é'"),
}


@pytest.mark.parametrize("name", KEYS)
def test_snapshot_in_chunks_by_any_key(mariadb_server: MariaDB, mariadb_database: str, name: str) -> None:
    columns, key, value = KEYS[name]
    table = f"{mariadb_database}.rows"
    mariadb_server.run(
        f"CREATE TABLE {table} ({columns}, v INT, PRIMARY KEY ({key}))",
        f"INSERT INTO {table} VALUES " + ", ".join(f"({value(i)}, {i})" for i in range(50)),
    )
    with opened(source_of(mariadb_server, table, snapshot_chunk_rows=7, snapshot="only")) as receiver:
        found = events(received(receiver))
    assert sorted(event["after"]["v"] for event in found) == list(range(50))
    assert len({event["_key"] for event in found}) == 50
    assert len({event["id"] for event in found}) == 50


@pytest.mark.parametrize("locks", [False, True], ids=["place", "locks"])
def test_snapshot_under_writes(mariadb_server: MariaDB, table: str, monkeypatch: Any, locks: bool) -> None:
    """Rows change, move and vanish during the snapshot, which crashes again and again: nothing is wrong."""
    if locks:  # as on MySQL
        made = snapshot_module.Snapshot.__init__
        monkeypatch.setattr(
            snapshot_module.Snapshot,
            "__init__",
            lambda self, server, rows: made(self, server, rows, locks=True),
        )
    mariadb_server.run(
        f"INSERT INTO {table} SELECT seq, 'old', seq FROM seq_1_to_2000", database=table.partition(".")[0]
    )
    source = source_of(mariadb_server, table, snapshot_chunk_rows=100)
    stopped = threading.Event()

    def write() -> None:
        turn = random.Random(3)
        with mariadb_server.connect() as connection, connection.cursor() as cursor:
            while not stopped.is_set():
                i = turn.randint(1, 2500)
                cursor.execute(
                    turn.choice((
                        f"REPLACE INTO {table} VALUES ({i}, 'new', {turn.randint(0, 99)})",
                        f"UPDATE {table} SET n = n + 1 WHERE id BETWEEN {i} AND {i + 5}",
                        f"DELETE FROM {table} WHERE id = {i}",
                        f"UPDATE IGNORE {table} SET id = {turn.randint(1, 2500)} WHERE id = {i}",
                    ))
                )  # fmt: skip

    writer = threading.Thread(target=write)
    writer.start()
    found: list[Row] = []
    position: str | None = None
    turn = random.Random(5)
    try:
        done, until = False, time.monotonic() + 60
        while not done and time.monotonic() < until:
            with opened(source, position) as receiver:
                for _ in range(turn.randint(1, 12)):
                    part = receiver.receive(2)
                    if part is None or turn.random() < 0.1:
                        break
                    found += part.events.to_pylist()
                    position = part.position
                    progress = Position.parse(position or "").snapshot
                    done = progress is not None and table in progress.done
        assert done, "the snapshot has not ended"
    finally:
        stopped.set()
        writer.join()
    with opened(source, position) as receiver:
        found += events(received(receiver))
    assert folded(found) == content(mariadb_server, table)
    assert {"r", "c", "u", "d"} <= {event["op"] for event in found}
    assert len({event["id"] for event in found}) == len(found)


def test_a_table_that_is_added_gets_its_snapshot(mariadb_server: MariaDB, table: str) -> None:
    other = f"{table}_too"
    mariadb_server.run(
        f"CREATE TABLE {other} LIKE {table}", f"INSERT INTO {table} VALUES (1, 'a', 1)",
        f"INSERT INTO {other} VALUES (2, 'b', 2)",
    )  # fmt: skip
    with opened(source_of(mariadb_server, table, envelope="debezium")) as receiver:
        first = received(receiver, 1)
    source = source_of(mariadb_server, table, other, envelope="debezium")
    with opened(source, first[-1].position) as receiver:
        (event,) = events(received(receiver))
    assert json.loads(event["value"])["after"] == {"id": 2, "v": "b", "n": 2}
