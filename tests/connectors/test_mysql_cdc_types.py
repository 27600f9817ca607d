"""Types of MariaDB: the events of the snapshot and of the log, compared with what a SELECT gives."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.mariadb_server import MariaDB
from tests.mysql_changes import Row, events, opened, received, source_of

COLUMNS = {
    "ti": "TINYINT", "tu": "TINYINT UNSIGNED", "boo": "BOOLEAN", "si": "SMALLINT", "su": "SMALLINT UNSIGNED",
    "mi": "MEDIUMINT", "mu": "MEDIUMINT UNSIGNED", "i": "INT", "iu": "INT UNSIGNED", "bi": "BIGINT",
    "bu": "BIGINT UNSIGNED", "y": "YEAR", "zf": "INT(8) ZEROFILL",
    "d1": "DECIMAL(5,2)", "d2": "DECIMAL(18,9)", "d3": "DECIMAL(38,10)", "d4": "DECIMAL(65,30)",
    "d5": "DECIMAL(10)", "d6": "DECIMAL(9,9)", "d7": "DECIMAL(20,0)", "d8": "DECIMAL(6,3) UNSIGNED",
    "f": "FLOAT", "fd": "DOUBLE",
    "da": "DATE", "t0": "TIME", "t3": "TIME(3)", "t6": "TIME(6)", "dt0": "DATETIME", "dt2": "DATETIME(2)",
    "dt6": "DATETIME(6)", "ts0": "TIMESTAMP NULL", "ts4": "TIMESTAMP(4) NULL", "ts6": "TIMESTAMP(6) NULL",
    "zc": "VARCHAR(200) COMPRESSED", "zt": "TEXT COMPRESSED CHARACTER SET latin1", "zb": "BLOB COMPRESSED",
    "ch": "CHAR(10)", "vc": "VARCHAR(40)", "vl": "VARCHAR(2000)", "tx": "TEXT", "lt": "LONGTEXT",
    "c1": "VARCHAR(20) CHARACTER SET latin1", "c2": "CHAR(20) CHARACTER SET utf16",
    "c3": "TEXT CHARACTER SET cp1251", "c4": "VARCHAR(20) CHARACTER SET sjis",
    "c5": "CHAR(200) CHARACTER SET utf8mb4", "c6": "VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci",
    "bn": "BINARY(6)", "vb": "VARBINARY(10)", "bl": "BLOB", "mb": "MEDIUMBLOB",
    "js": "JSON", "en": "ENUM('small','grün','x,y')", "se": "SET('a','b','ç')",
    "e2": "ENUM('я','b') CHARACTER SET cp1251", "b1": "BIT(1)", "b7": "BIT(7)", "b64": "BIT(64)",
    "g": "POINT", "u": "UUID", "ip4": "INET4", "ip6": "INET6",
    "vg": "INT AS (i + 1) VIRTUAL",
    "sg": "INT AS (i + 2) STORED",
}  # fmt: skip

ROWS: list[dict[str, str]] = [
    {},
    {
        "ti": "-128",
        "tu": "255",
        "boo": "TRUE",
        "si": "-32768",
        "su": "65535",
        "mi": "-8388608",
        "mu": "16777215",
        "i": "-2147483648",
        "iu": "4294967295",
        "bi": "-9223372036854775808",
        "bu": "18446744073709551615",
        "y": "2155",
        "zf": "42",
        "d1": "-999.99",
        "d2": "-123456789.987654321",
        "d3": "-1234567890123456789012345678.0123456789",
        "d4": "-" + "9" * 35 + "." + "8" * 30,
        "d5": "-9999999999",
        "d6": "-0.000000001",
        "d7": "99999999999999999999",
        "d8": "999.999",
        "f": "-3.4028234e38",
        "fd": "2.2250738585072014e-308",
        "da": "'1000-01-01'",
        "t0": "'-838:59:59'",
        "t3": "'-00:00:00.5'",
        "t6": "'838:59:58.999999'",
        "dt0": "'9999-12-31 23:59:59'",
        "dt2": "'2024-02-29 12:34:56.78'",
        "dt6": "'1969-12-31 23:59:59.999999'",
        "ts0": "'2038-01-19 03:14:07'",
        "ts4": "'1970-01-01 00:00:01.0001'",
        "ts6": "'2026-03-29 01:30:00.123456'",
        "ch": "'ab  '",
        "vc": "'ab  '",
        "vl": "REPEAT('ü', 2000)",
        "tx": "'x'",
        "lt": "REPEAT('long', 30000)",
        "c1": "'€ ÿ é'",
        "c2": "'日本 😀'",
        "c3": "'Привет'",
        "c4": "'日本語'",
        "c5": "REPEAT('😀', 200)",
        "c6": "'ǅ'",
        "bn": "x'01020000'",
        "vb": "x'00ff00'",
        "bl": "x'8000'",
        "mb": "REPEAT(x'00ff', 100000)",
        "js": '\'{"a": [1, 2.50, "ü", null]}\'',
        "en": "'grün'",
        "se": "'a,ç'",
        "e2": "'я'",
        "b1": "b'1'",
        "b7": "b'1010101'",
        "b64": "x'ffffffffffffffff'",
        "g": "POINT(1.5, -2)",
        "u": "'123e4567-e89b-12d3-a456-426655440000'",
        "ip4": "'192.168.0.1'",
        "ip6": "'2001:db8::ff00:42:8329'",
        "zc": "REPEAT('z', 200)",
        "zt": "REPEAT('compress mé ', 50)",
        "zb": "REPEAT(x'00ff', 300)",
    },
    {
        "ti": "127",
        "tu": "0",
        "boo": "FALSE",
        "bi": "9223372036854775807",
        "bu": "9223372036854775808",
        "y": "0",
        "d1": "0.01",
        "d2": "0.000000001",
        "d3": "0",
        "d4": "0." + "1" * 30,
        "d6": "0.999999999",
        "d7": "1",
        "i": "7",
        "f": "0.1",
        "fd": "-0.1",
        "da": "'0000-00-00'",
        "t0": "'00:00:00'",
        "t3": "'-12:34:56.789'",
        "t6": "'-00:00:00.000001'",
        "dt0": "'0000-00-00 00:00:00'",
        "dt2": "'2024-00-00 00:00:00'",
        "dt6": "'0001-01-01'",
        "ts0": "'0000-00-00 00:00:00'",
        "ts6": "'1970-01-01 00:00:01'",
        "ch": "''",
        "vc": "''",
        "tx": "''",
        "c1": "CONVERT(x'818d8f909d' USING latin1)",
        "bn": "x''",
        "vb": "x''",
        "bl": "x''",
        "js": "'[]'",
        "en": "'nonsense'",
        "se": "''",
        "b1": "b'0'",
        "b7": "0",
        "b64": "1",
        "u": "'018c2e65-4b7d-7c3a-8f5e-2b1d3c4a5e6f'",
        "ip4": "'0.0.0.0'",
        "ip6": "'::'",
        "zc": "''",
        "zt": "'shört'",
        "zb": "x'80'",
    },
    {
        "da": "'9999-12-31'",
        "t6": "'00:00:01.5'",
        "en": "'x,y'",
        "se": "'a,b,ç'",
        "f": "1e-40",
        "fd": "1e300",
        "u": "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "dt6": "'2024-06-30 23:59:59.5'",
    },
]


def _created(database: str) -> str:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    return f"CREATE TABLE {database}.kinds (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4"


def _fill(server: MariaDB, database: str, first: int) -> None:
    with server.connect(
        database, charset="utf8mb4", init_command="SET time_zone = '+00:00', sql_mode = ''"
    ) as to:
        for number, row in enumerate(ROWS, first):
            names = ", ".join(f"`{name}`" for name in ["id", *row])
            to.cursor().execute(
                f"INSERT INTO kinds ({names}) VALUES ({', '.join([str(number), *row.values()])})"
            )


def _selected(server: MariaDB, database: str) -> dict[int, Row]:
    """The rows by PyMySQL's own conversions, with the few that it does not know."""
    exprs = [
        f"`{name}`+0e0 AS `{name}`" if kind == "FLOAT" else f"`{name}`" for name, kind in COLUMNS.items()
    ]
    utc = {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
    with server.connect(database, **utc) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, {', '.join(exprs)} FROM kinds")
        found = cursor.fetchall()
    names = ["id", *COLUMNS]
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return {row["id"]: {name: _expected(name, value) for name, value in row.items()} for row in rows}


def _expected(name: str, value: Any) -> Any:
    """A value of PyMySQL as an event has it."""
    kind = COLUMNS.get(name, "INT")
    if value is None or (isinstance(value, str) and kind.startswith(("DATE", "TIMESTAMP"))):
        return None  # PyMySQL leaves a date that is none as text
    if kind.startswith("TIME") and isinstance(value, timedelta):
        digits = int(kind[5:-1]) if "(" in kind else 0
        total = abs(value) // timedelta(microseconds=1)
        text = f"{total // 3_600_000_000:02d}:{total // 60_000_000 % 60:02d}:{total // 1_000_000 % 60:02d}"
        text += f".{total % 1_000_000:06d}"[: digits + 1] if digits else ""
        return f"-{text}" if value < timedelta(0) else text
    if kind.startswith("TIMESTAMP"):
        return value.replace(tzinfo=UTC)
    if kind in ("BIGINT UNSIGNED", "BIT(64)"):
        return Decimal(int.from_bytes(value, "big") if isinstance(value, bytes) else value)
    if kind == "BIT(1)":
        return value == b"\x01"
    if kind.startswith("BIT"):
        return int.from_bytes(value, "big")
    return str(value) if kind == "DECIMAL(65,30)" else value


@pytest.fixture
def filled(mariadb_server: MariaDB, mariadb_database: str) -> tuple[MariaDB, str]:
    mariadb_server.run(_created(mariadb_database))
    _fill(mariadb_server, mariadb_database, 0)
    return mariadb_server, mariadb_database


def _agree(found: list[Row], wanted: dict[int, Row]) -> None:
    for event in found:
        row = event["after"]
        for name, value in wanted[row["id"]].items():
            assert row[name] == value, f"{event['op']} {row['id']} {name} {COLUMNS.get(name)}"
            assert type(row[name]) is type(value), name


def test_snapshot_and_log_agree_with_a_select(filled: tuple[MariaDB, str]) -> None:
    server, database = filled
    with opened(source_of(server, f"{database}.kinds")) as receiver:
        read = events(received(receiver, len(ROWS)))
        _fill(server, database, len(ROWS))
        created = events(received(receiver, len(ROWS)))
        server.run(f"UPDATE {database}.kinds SET tx = 'changed' WHERE id >= {len(ROWS)}")
        updated = events(received(receiver, len(ROWS)))
        wanted = _selected(server, database)
        server.run(f"DELETE FROM {database}.kinds WHERE id >= {len(ROWS)}")
        deleted = events(received(receiver, len(ROWS)))
    assert {event["op"] for event in read} == {"r"}
    assert {event["op"] for event in created} == {"c"}
    assert {event["op"] for event in updated} == {"u"}
    _agree(read, wanted)
    _agree(updated, wanted)
    for number, event in enumerate(created):
        assert {**event["after"], "tx": None} == {
            **read[number]["after"],
            "id": len(ROWS) + number,
            "tx": None,
        }
        assert event["after"] == updated[number]["before"]
    assert [event["before"] for event in deleted] == [event["after"] for event in updated]


def test_types_of_the_columns(filled: tuple[MariaDB, str]) -> None:
    server, database = filled
    declared = dict(
        part.split(" ") for part in (source_of(server, f"{database}.kinds").schema_ or "").split(", ")
    )
    assert [declared[f"`{name}`"] for name in ("bu", "d3", "boo", "d4")] == [
        "DECIMAL(20,0)", "DECIMAL(38,10)", "TINYINT", "STRING",
    ]  # fmt: skip
    assert [declared[f"`{name}`"] for name in ("da", "dt6", "ts6", "t6", "en", "bn", "b1", "b7", "f")] == [
        "DATE", "TIMESTAMP_NTZ", "TIMESTAMP", "STRING", "STRING", "BINARY", "BOOLEAN", "BIGINT", "FLOAT",
    ]  # fmt: skip


def test_json_says_the_same(filled: tuple[MariaDB, str]) -> None:
    """With several tables rows are JSON: the snapshot and the log write the same text."""
    server, database = filled
    server.run(f"CREATE TABLE {database}.other (id INT PRIMARY KEY)")
    with opened(source_of(server, f"{database}.*")) as receiver:
        read = [json.loads(event["after"]) for event in events(received(receiver, len(ROWS)))]
        server.run(f"UPDATE {database}.kinds SET i = 1, tx = 'x'")
        updated = events(received(receiver, len(ROWS)))
    for before, event in zip(read, updated, strict=True):
        assert json.loads(event["before"]) == before
    row = read[1]
    assert (row["bu"], row["da"], row["ts6"]) == (
        18446744073709551615, "1000-01-01", "2026-03-29T01:30:00.123456Z",
    )  # fmt: skip
    assert base64.b64decode(row["vb"]) == b"\x00\xff\x00"
    text = updated[1]["before"]
    assert '"d3":-1234567890123456789012345678.0123456789' in text
    assert '"f":-3.4028235e38' in text.replace("e+38", "e38")


def test_key_is_the_primary_key_as_json(mariadb_server: MariaDB, mariadb_database: str) -> None:
    table = f"{mariadb_database}.keys"
    mariadb_server.run(
        f"CREATE TABLE {table} (a VARCHAR(10), b DECIMAL(4,1), c DATE, v INT, PRIMARY KEY (c, a, b))",
        f"INSERT INTO {table} VALUES ('ü\"', 1.5, '2024-01-02', 1)",
    )
    with opened(source_of(mariadb_server, table)) as receiver:
        (read,) = events(received(receiver, 1))
        mariadb_server.run(f"UPDATE {table} SET v = 2")
        (updated,) = events(received(receiver, 1))
    assert read["_key"] == updated["_key"] == '{"c":"2024-01-02","a":"ü\\"","b":1.5}'.encode()
    assert read["after"]["c"] == date(2024, 1, 2)
    assert read["time"].tzinfo is not None
    assert abs(datetime.now(UTC) - updated["time"]) < timedelta(minutes=5)
