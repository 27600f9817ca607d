"""The conformance suite on `mysql_cdc`, and its flows in Spark, against a real MariaDB."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from penstock.testing.flows import Bench, wait_until
from penstock.testing.source_suite import SOME, Events, SourceSuite, SourceSystem
from tests.mariadb_server import PASSWORD, MariaDB

pytestmark = pytest.mark.slow

COLUMNS = "id BIGINT, name STRING"


class Rows(SourceSystem):
    lag = transactional = True
    outage_s = 60.0
    processors = ({"type": "sql", "query": "SELECT after.id, after.name FROM input"},)

    def __init__(self, server: MariaDB, database: str) -> None:
        self.server, self.table = server, f"{database}.events"
        server.run(f"CREATE TABLE {self.table} (id BIGINT PRIMARY KEY, name VARCHAR(50))")
        self.before = self._place()

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "mysql_cdc", "url": self.server.url(), "tables": [self.table], "snapshot": "never",
            "position": f"gtid:{self.before[2]}",
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        rows = [(event["id"], event["name"]) for event in events]
        with self.server.connect(autocommit=False) as connection:
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {self.table} (id, name) VALUES (%s, %s)", rows)
            connection.commit()

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "file": (f"file:{self.before[0]}:{self.before[1]}", len(SOME)),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        known = {"schema": COLUMNS}
        password = quote(PASSWORD, safe="")
        return {
            "address": (self.spec(url="mysql://127.0.0.1:9", **known), "unreachable"),
            "login": (self.spec(url=self.server.url().replace(password, "wrong"), **known), "login_failed"),
            "table": (self.spec(tables=["nowhere.events"], **known), "unknown_table"),
            "position": (self.spec(position="file:binlog.999999:4", **known), "position_gone"),
        }

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def _place(self) -> tuple[str, int, str]:
        ((file, pos, *_),) = self.server.run("SHOW MASTER STATUS")
        ((gtid,),) = self.server.run(f"SELECT BINLOG_GTID_POS('{file}', {pos})")
        return file, pos, gtid


class Snapshots(Rows):
    """The same table, read by snapshots first."""

    transactional = False
    outage_s = 0.0

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {
            "type": "mysql_cdc", "url": self.server.url(), "tables": [self.table], "snapshot_chunk_rows": 7,
            **fields,
        }  # fmt: skip

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        return {}

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {}


class TestMysqlCdcSource(SourceSuite):
    @pytest.fixture
    def system(self, mariadb_server: MariaDB, mariadb_database: str, monkeypatch: pytest.MonkeyPatch) -> Rows:
        # The backlog of a test would be one append, which an empty stream takes whatever its limit is.
        monkeypatch.setattr("penstock.connectors.mysql_cdc.receiver.MOST_EVENTS", 20)
        return Rows(mariadb_server, mariadb_database)


class TestMysqlCdcSnapshot(SourceSuite):
    @pytest.fixture
    def system(self, mariadb_server: MariaDB, mariadb_database: str) -> Snapshots:
        return Snapshots(mariadb_server, mariadb_database)


def test_events_and_dead_letters(
    spark: Any, tmp_path: Any, mariadb_server: MariaDB, mariadb_database: str
) -> None:
    """Typed rows arrive with key and position; a value that a retyped column made too long is a letter."""
    table = f"{mariadb_database}.orders"
    mariadb_server.run(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, amount DECIMAL(10,2), n INT)",
        f"INSERT INTO {table} VALUES (1, 1.5, 1)",
    )
    bench = Bench(spark, tmp_path)
    source = {"type": "mysql_cdc", "url": mariadb_server.url(), "tables": [table]}
    assert bench.stream("copy") == []
    with bench.running(source, {"type": "stream", "stream": "copy"}):
        wait_until("the row", lambda: len(bench.stream("copy")) == 1)
        mariadb_server.run(
            f"ALTER TABLE {table} MODIFY n BIGINT, ADD COLUMN more INT",
            f"INSERT INTO {table} VALUES (2, 2, 5, 1), (3, 3, 5000000000, 1), (4, 4, NULL, 1)",
        )
        wait_until("the rows", lambda: len(bench.stream("copy")) == 3)
        wait_until("the letter", bench.letters)
    found = [json.loads(event["value"]) for event in bench.stream("copy")]
    assert [(event["op"], event["after"]["id"], event["after"].get("n")) for event in found] == [
        ("r", 1, 1), ("c", 2, 5), ("c", 4, None),
    ]  # fmt: skip
    assert bench.stream("copy")[0]["_key"] == b'{"id":1}'
    assert "fault" not in found[0]
    (letter,) = bench.letters()
    assert letter["code"] == "column_changed"
    assert json.loads(letter["event"])["n"] == 5000000000
