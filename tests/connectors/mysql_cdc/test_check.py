"""Positions, settings and the connection test on a real MariaDB, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.mysql_cdc.check import probe_mysql
from penstock.connectors.mysql_cdc.position import GtidSet, Place, Position
from penstock.connectors.mysql_cdc.source import MySqlCdcSource
from penstock.errors import Invalid, PenstockError
from tests.mariadb_server import PASSWORD, USER, MariaDB
from tests.mysql_changes import events, opened, received, source_of

# Positions


def test_idle_flows_move_on(mariadb_server: MariaDB, table: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Where only other tables change, the position moves all the same: old files may be purged."""
    monkeypatch.setattr("penstock.connectors.mysql_cdc.idle.EVERY_S", 0.0)
    source = source_of(mariadb_server, table)
    mariadb_server.run(f"INSERT INTO {table} VALUES (1, 'a', 1)", f"CREATE TABLE {table}_other (id INT)")
    with opened(source, state=tmp_path) as receiver:
        (part,) = received(receiver, 1)
        mariadb_server.run(f"INSERT INTO {table}_other VALUES (1)", "FLUSH BINARY LOGS")
        received(receiver)
    ((file, *_),) = mariadb_server.run("SHOW MASTER STATUS")
    mariadb_server.run(f"PURGE BINARY LOGS TO '{file}'", f"INSERT INTO {table} VALUES (2, 'b', 2)")
    with opened(source, part.position, tmp_path) as receiver:
        assert [event["_key"] for event in events(received(receiver, 1))] == [b'{"id":2}']
    with opened(source, part.position) as receiver, pytest.raises(Invalid) as gone:
        received(receiver)
    (problem,) = gone.value.problems
    assert (problem.code, problem.path) == ("position_gone", "position")
    assert "start the pipeline over" in (problem.hint or "")


def test_a_flow_without_events_keeps_its_start(mariadb_server: MariaDB, table: str, tmp_path: Path) -> None:
    source = source_of(mariadb_server, table, snapshot="never")
    with opened(source, state=tmp_path) as receiver:
        received(receiver)
    mariadb_server.run(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    with opened(source, None, tmp_path) as receiver:
        assert len(events(received(receiver, 1))) == 1


def test_positions_are_text() -> None:
    place = Place("mysql-bin.000009", 4711, "0-1-5,3-2-9")
    position = Position(place, {"a.b": 3})
    assert Position.parse(position.text()) == position
    assert not place.reaches(Place("mysql-bin.000010", 4))
    assert Place("mysql-bin.1000000", 4).reaches(Place("mysql-bin.999999", 9))


def test_sets_of_gtids() -> None:
    mariadb = GtidSet("0-1-5,3-2-9")
    mariadb.add("0-2-6")
    assert str(mariadb) == "0-2-6,3-2-9"
    mysql = GtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:8")
    for number in (4, 9, 6, 5, 6, 7):
        mysql.add(f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}")
    mysql.add("ffffffff-71ca-11e1-9e33-c80aa9429562:1")
    assert str(mysql) == "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9,ffffffff-71ca-11e1-9e33-c80aa9429562:1"


# The connection test


@pytest.fixture
def reader(mariadb_server: MariaDB) -> Iterator[str]:
    """The URL of a user with the rights that the documentation asks for."""
    name = "cdc_reader"
    mariadb_server.run(
        f"CREATE OR REPLACE USER {name}@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {name}@'%'",
    )
    yield f"mysql://{name}:secret@{mariadb_server.address}"
    mariadb_server.run(f"DROP USER {name}@'%'")


def codes(source: MySqlCdcSource) -> list[str]:
    return [problem.code for problem in probe_mysql(source).problems]


def test_probe(mariadb_server: MariaDB, table: str, reader: str) -> None:
    mariadb_server.run(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    found = probe_mysql(MySqlCdcSource(url=reader, tables=[table]))
    assert found.problems == []
    assert table in found.offers["tables"]
    assert found.offers["columns"] == ["id INT", "v STRING", "n INT"]
    assert found.sample == [{"id": "1", "v": "a", "n": "1"}]
    with opened(MySqlCdcSource(url=reader, tables=[table])) as receiver:
        assert len(events(received(receiver, 1))) == 1


def test_probe_finds_what_is_wrong(mariadb_server: MariaDB, table: str, reader: str) -> None:
    assert codes(MySqlCdcSource(url="mysql://127.0.0.1:9", tables=[table])) == ["unreachable"]
    assert codes(MySqlCdcSource(url=reader.replace("secret", "wrong"), tables=[table])) == ["login_failed"]
    missing = probe_mysql(MySqlCdcSource(url=reader, tables=[table[:-1]])).problems
    assert [problem.code for problem in missing] == ["unknown_table"]
    assert table in (missing[0].hint or "")
    gone = MySqlCdcSource(url=reader, tables=[table], snapshot="never", position="file:binlog.999999:4")
    assert codes(gone) == ["position_gone"]
    database = table.partition(".")[0]
    mariadb_server.run(
        f"CREATE TABLE {database}.no_key (id INT)",
        f"CREATE TABLE {database}.old (id INT PRIMARY KEY) ENGINE=Aria",
    )
    assert codes(MySqlCdcSource(url=reader, tables=[f"{database}.*"])) == ["no_snapshot", "no_snapshot"]
    assert codes(MySqlCdcSource(url=reader, tables=[f"{database}.*"], snapshot="never")) == []


def test_probe_checks_settings_and_rights(mariadb_server: MariaDB, table: str, reader: str) -> None:
    source = MySqlCdcSource(url=reader, tables=[table])
    settings = {"binlog_format": "MIXED", "binlog_row_image": "MINIMAL", "binlog_row_metadata": "NO_LOG"}
    try:
        for name, value in settings.items():
            mariadb_server.run(f"SET GLOBAL {name} = '{value}'")
        assert codes(source) == list(settings)
        with pytest.raises(Invalid), opened(source):
            pass
    finally:
        mariadb_server.run("SET GLOBAL binlog_format = 'ROW'", "SET GLOBAL binlog_row_image = 'FULL'")
        mariadb_server.run("SET GLOBAL binlog_row_metadata = 'FULL'")
    mariadb_server.run("REVOKE REPLICATION SLAVE ON *.* FROM cdc_reader@'%'")
    assert codes(source) == ["permission_denied"]


def test_passwords_are_not_shown(mariadb_server: MariaDB) -> None:
    source = MySqlCdcSource(
        host="127.0.0.1", port=mariadb_server.port, user=USER, password=PASSWORD + "x", tables=["a.b"]
    )
    with pytest.raises(PenstockError) as refused:
        source.connect()
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tables": ["a.b"]}, "either 'url' or 'host'"),
        ({"url": "mysql://h", "host": "h", "tables": ["a.b"]}, "either 'url' or 'host'"),
        ({"url": "mysql://h", "user": "u", "tables": ["a.b"]}, "into 'url'"),
        ({"url": "postgres://h", "tables": ["a.b"]}, "not a valid address"),
        ({"url": "mysql://h", "tables": ["b"]}, "has no database"),
        ({"url": "mysql://h", "tables": ["a.*"], "schema": "id INT"}, "exactly one table"),
        ({"url": "mysql://h", "tables": ["a.b"], "position": "earliest"}, "snapshot 'never'"),
        (
            {"url": "mysql://h", "tables": ["a.b"], "snapshot": "never", "position": "x"},
            "not a valid position",
        ),
    ],
)
def test_settings_that_make_no_sense(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MySqlCdcSource.model_validate(fields)


def test_a_database_in_the_url() -> None:
    assert MySqlCdcSource(url="mysql://h/shop", tables=["orders", "a.b"]).full_names == ["shop.orders", "a.b"]
