"""Changes of rows and transactions from a real MariaDB, without Spark."""

from __future__ import annotations

import random
from typing import Any

from penstock.connectors.mysql_cdc import receiver as receiver_module
from tests.mariadb_server import MariaDB
from tests.mysql_changes import Row, content, events, folded, opened, received, source_of


def test_changes_of_a_row(mariadb_server: MariaDB, table: str) -> None:
    with opened(source_of(mariadb_server, table)) as receiver:
        mariadb_server.run(
            f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)",
            f"UPDATE {table} SET v = 'c' WHERE id = 1",
            f"UPDATE {table} SET id = id + 10",
            f"DELETE FROM {table} WHERE id = 11",
            f"TRUNCATE TABLE {table}",
        )
        parts = received(receiver, 9)
    found = events(parts)
    assert [(event["op"], event["_key"]) for event in found] == [
        ("c", b'{"id":1}'), ("c", b'{"id":2}'), ("u", b'{"id":1}'), ("d", b'{"id":1}'), ("c", b'{"id":11}'),
        ("d", b'{"id":2}'), ("c", b'{"id":12}'), ("d", b'{"id":11}'), ("t", None),
    ]  # fmt: skip
    assert found[2]["before"] == {"id": 1, "v": "a", "n": 1}
    assert found[2]["after"] == {"id": 1, "v": "c", "n": 1}
    assert len({event["id"] for event in found}) == len(found)
    marks = [mark for part in parts for mark in part.tx]
    assert [end - first for first, end, _, _ in marks] == [2, 1, 4, 1, 1]
    assert all(ends for *_, ends in marks)
    assert [found[i]["tx"] for i in (0, 2, 3, 7, 8)] == [tx for *_, tx, _ in marks]


def test_goes_on_after_each_part(mariadb_server: MariaDB, table: str, monkeypatch: Any) -> None:
    """A crash after any append, or before it, changes no event: ids, rows and marks are the same."""
    monkeypatch.setattr(receiver_module, "MOST_EVENTS", 3)
    source = source_of(mariadb_server, table, snapshot="never")
    with opened(source) as receiver:
        start = receiver._now().text()
    for first in range(0, 40, 10):
        rows = ", ".join(f"({i}, 'x', {i})" for i in range(first, first + 10))
        # Row events of two rows each, so that parts end within the transaction.
        with mariadb_server.connect(autocommit=False) as connection:
            for row in rows.split("), "):
                connection.cursor().execute(f"INSERT INTO {table} VALUES {row.rstrip(')')})")
            connection.cursor().execute(f"UPDATE {table} SET n = -n, id = id + 1000 WHERE id >= {first}")
            connection.commit()
    with opened(source, start) as receiver:
        wanted = received(receiver)
    assert max(len(part.tx) for part in wanted) <= 4
    assert any(not ends for part in wanted for *_, ends in part.tx)
    position: str | None = start
    found: list[Row] = []
    turn = random.Random(7)
    while len(found) < sum(part.events.num_rows for part in wanted):
        with opened(source, position) as receiver:
            for _ in range(turn.randint(1, 3)):
                part = receiver.receive(5)
                assert part is not None
                if turn.random() < 0.3:
                    break  # killed before the append: the next one gets the same events
                found += part.events.to_pylist()
                position = part.position
                if len(found) >= sum(part.events.num_rows for part in wanted):
                    break
    assert found == events(wanted)
    table_now = content(mariadb_server, table)
    assert folded(found) == table_now


def test_transactions_end_with_rows(mariadb_server: MariaDB, table: str, monkeypatch: Any) -> None:
    """A large transaction comes in parts, and the last part says that it ends."""
    monkeypatch.setattr(receiver_module, "MOST_EVENTS", 10)
    with opened(source_of(mariadb_server, table, snapshot="never")) as receiver:
        for size in (10, 11, 35):
            with mariadb_server.connect(autocommit=False) as connection:
                for i in range(size):
                    connection.cursor().execute(f"INSERT INTO {table} VALUES ({size * 100 + i}, 'x', 1)")
                connection.commit()
        parts = received(receiver, 56)
    last: dict[str, bool] = {}
    for part in parts:
        assert part.events.num_rows <= 20
        for _, _, tx, ends in part.tx:
            assert not last.get(tx), "events after the end"
            last[tx] = ends
    assert list(last.values()) == [True, True, True]
