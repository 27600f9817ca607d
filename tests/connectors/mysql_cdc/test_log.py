"""Changes of tables and forms of the binary log of a real MariaDB, without Spark."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from penstock.errors import Invalid
from tests.mariadb_server import MariaDB
from tests.mysql_changes import Row, content, events, folded, opened, received, source_of

NIGHTLY = os.environ.get("PENSTOCK_TEST_NIGHTLY") == "1"


# Random transactions

CHANGE = st.tuples(st.sampled_from("iudmr"), st.integers(1, 8), st.integers(1, 8), st.sampled_from("abc"))


TRANSACTIONS = st.lists(st.tuples(st.lists(CHANGE, max_size=6), st.booleans()), max_size=12)


@settings(
    max_examples=100 if NIGHTLY else 12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(TRANSACTIONS)
def test_random_transactions(mariadb_server: MariaDB, table: str, work: list[Any]) -> None:
    """Events of random transactions, some rolled back, make the table; so does the snapshot before them."""
    statements = {
        "i": "INSERT IGNORE INTO {t} VALUES ({a}, '{v}', {b})",
        "u": "UPDATE {t} SET v = '{v}' WHERE id >= {a}",
        "d": "DELETE FROM {t} WHERE id = {a}", "m": "UPDATE IGNORE {t} SET id = {b} WHERE id = {a}",
        "r": "REPLACE INTO {t} VALUES ({a}, '{v}', {b})",
    }  # fmt: skip
    with opened(source_of(mariadb_server, table, snapshot_chunk_rows=3)) as receiver:
        with mariadb_server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for changes, kept in work:
                for what, a, b, v in changes:
                    cursor.execute(statements[what].format(t=table, a=a, b=b, v=v))
                (connection.commit if kept else connection.rollback)()
            cursor.execute(f"INSERT INTO {table} VALUES (999, 'end', 0)")
            connection.commit()
        found: list[Row] = []
        until = time.monotonic() + 30
        while not any(event["_key"] == b'{"id":999}' for event in found) and time.monotonic() < until:
            part = receiver.receive(1)
            found += [] if part is None else part.events.to_pylist()
    assert folded(found) == content(mariadb_server, table)
    mariadb_server.run(f"DELETE FROM {table}")


# Changes of tables


def test_added_and_removed_columns(mariadb_server: MariaDB, table: str) -> None:
    source = source_of(mariadb_server, table, snapshot="never")
    with capture_logs() as logs, opened(source) as receiver:
        mariadb_server.run(
            f"INSERT INTO {table} VALUES (1, 'a', 1)", f"ALTER TABLE {table} ADD COLUMN more INT FIRST",
            f"INSERT INTO {table} VALUES (7, 2, 'b', 2)",
        )  # fmt: skip
        parts = received(receiver, 2)
    assert [event["after"] for event in events(parts)] == [
        {"id": 1, "v": "a", "n": 1},
        {"id": 2, "v": "b", "n": 2},
    ]
    assert {"table_altered", "column_added"} <= {log.get("code") for log in logs}
    start = parts[-1].position
    with opened(source, start) as receiver:
        mariadb_server.run(f"ALTER TABLE {table} DROP COLUMN v", f"INSERT INTO {table} VALUES (7, 3, 3)")
        with pytest.raises(Invalid) as refused:
            received(receiver)
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("column_removed", "schema")
    saved = source_of(mariadb_server, table, snapshot="never")
    with opened(saved, start) as receiver:
        (event,) = events(received(receiver, 1))
    assert event["after"] == {"more": 7, "id": 3, "n": 3}


def test_columns_that_were_added_later_are_null(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        start = receiver._now().text()
    mariadb_server.run(
        f"INSERT INTO {table} VALUES (1, 'a', 1)",
        f"ALTER TABLE {table} ADD COLUMN more INT, MODIFY n BIGINT",
        f"INSERT INTO {table} VALUES (2, 'b', 5000000000, 7)",
    )  # fmt: skip
    with opened(source_of(mariadb_server, table, snapshot="never"), start) as receiver:
        found = [event["after"] for event in events(received(receiver, 2))]
    assert found == [
        {"id": 1, "v": "a", "n": 1, "more": None},
        {"id": 2, "v": "b", "n": 5000000000, "more": 7},
    ]


def test_a_dropped_table_is_empty(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        mariadb_server.run(
            f"INSERT INTO {table} VALUES (1, 'a', 1)", f"DROP TABLE {table}",
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT)",
            f"INSERT INTO {table} VALUES (2, 'b', 2)",
        )  # fmt: skip
        found = events(received(receiver, 3))
    assert [event["op"] for event in found] == ["c", "t", "c"]
    assert folded(found) == content(mariadb_server, table)


def test_statements_in_the_log_are_an_error(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        mariadb_server.run(
            "SET SESSION binlog_format = 'STATEMENT'", f"INSERT INTO {table} VALUES (1, 'a', 1)"
        )
        with pytest.raises(Invalid, match="statement"):
            received(receiver)


def test_rows_without_all_columns_are_an_error(mariadb_server: MariaDB, table: str) -> None:
    mariadb_server.run(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        mariadb_server.run("SET SESSION binlog_row_image = 'MINIMAL'", f"UPDATE {table} SET v = 'b'")
        with pytest.raises(Invalid, match="all columns"):
            received(receiver)


def test_prepared_transactions_are_an_error(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        mariadb_server.run(
            "XA START 'x'",
            f"INSERT INTO {table} VALUES (1, 'a', 1)",
            "XA END 'x'",
            "XA PREPARE 'x'",
            "XA COMMIT 'x'",
        )
        with pytest.raises(Invalid, match="XA PREPARE"):
            received(receiver)


def test_compressed_events(mariadb_server: MariaDB, table: str) -> None:
    mariadb_server.run("SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10")
    try:
        with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
            mariadb_server.run(
                f"INSERT INTO {table} SELECT seq, REPEAT('x', 20), seq FROM seq_1_to_100",
                f"UPDATE {table} SET v = REPEAT('y', 20)", f"DELETE FROM {table} WHERE id > 50",
                database=table.partition(".")[0],
            )  # fmt: skip
            found = events(received(receiver, 250))
    finally:
        mariadb_server.run("SET GLOBAL log_bin_compress = 0")
    assert folded(found) == content(mariadb_server, table)


def test_files_rotate(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        for i in range(3):
            mariadb_server.run(f"INSERT INTO {table} VALUES ({i}, 'a', 1)", "FLUSH BINARY LOGS")
        parts = received(receiver, 3)
        received(receiver)
        assert receiver.lag() == 0
        mariadb_server.run(
            f"INSERT INTO {table} SELECT seq, 'b', 2 FROM seq_100_to_300", database=table.split(".")[0]
        )
        assert (receiver.lag() or 0) > 0
    with opened(source_of(mariadb_server, table, snapshot="never"), parts[0].position) as receiver:
        first = events(parts)[parts[0].events.num_rows :]
        assert events(received(receiver, 201 + len(first)))[: len(first)] == first


def test_large_rows(mariadb_server: MariaDB, mariadb_database: str) -> None:
    """A row that is larger than a packet of the protocol."""
    table = f"{mariadb_database}.large"
    mariadb_server.run("SET GLOBAL max_allowed_packet = 1073741824")
    mariadb_server.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v LONGBLOB)")
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        mariadb_server.run(f"INSERT INTO {table} VALUES (1, REPEAT('x', 40000000)), (2, 'small')")
        found = events(received(receiver, 2))
    assert [len(event["after"]["v"]) for event in found] == [40_000_000, 5]


def test_only_chosen_tables(mariadb_server: MariaDB, table: str) -> None:
    database = table.partition(".")[0]
    mariadb_server.run(
        *(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY)" for name in ("a_1", "a_2", "b"))
    )
    with opened(source_of(mariadb_server, f"{database}.a_*")) as receiver:
        for name in ("a_1", "b", "a_2"):
            mariadb_server.run(f"INSERT INTO {database}.{name} VALUES (1)")
        mariadb_server.run(
            f"CREATE TABLE {database}.a_3 (id INT PRIMARY KEY)", f"INSERT INTO {database}.a_3 VALUES (1)"
        )
        found = events(received(receiver, 3))
    assert [event["table"].partition(".")[2] for event in found] == ["a_1", "a_2", "a_3"]
    assert [event["after"] for event in found] == ['{"id":1}'] * 3


@pytest.mark.parametrize("envelope", ["debezium", "cloudevents"])
def test_envelopes(mariadb_server: MariaDB, table: str, envelope: str) -> None:
    mariadb_server.run(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    with opened(source_of(mariadb_server, table, envelope=envelope)) as receiver:
        read = events(received(receiver, 1))
        mariadb_server.run(f"UPDATE {table} SET v = 'b'")
        updated = events(received(receiver, 1))
    first, second = (json.loads(event["value"]) for event in read + updated)
    rows = [first["data"], second["data"]] if envelope == "cloudevents" else [first, second]
    assert [(row["op"], row["before"], row["after"]) for row in rows] == [
        ("r", None, {"id": 1, "v": "a", "n": 1}),
        ("u", {"id": 1, "v": "a", "n": 1}, {"id": 1, "v": "b", "n": 1}),
    ]
    assert read[0]["_key"] == b'{"id":1}'
    if envelope == "debezium":
        assert second["source"]["connector"] == "mariadb"
        assert (second["source"]["db"], second["source"]["table"]) == tuple(table.split("."))
        assert first["source"]["snapshot"] == "true"
    else:
        assert second["type"] == "penstock.mariadb.update"
        assert second["subject"] == table
