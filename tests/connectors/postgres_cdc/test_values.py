"""The values of rows and of changes, from a real server, without Spark."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.postgres_cdc_log import Log
from tests.postgres_cdc_place import ORDERS, Place, content, folded


def test_rows_and_then_changes_give_the_table(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "INSERT INTO orders SELECT i, 'c' || i, i / 7.0 FROM generate_series(1, 1000) i")
    log = Log(place.source("orders", snapshot_chunk_rows=300))
    logs.append(log)
    log.open()
    place.run("UPDATE orders SET amount = 5 WHERE id = 999", "DELETE FROM orders WHERE id = 1")
    log.drain()
    assert [event["op"] for event in log.events] == ["r"] * 1000 + ["u", "d"]
    assert folded(log.events)["public.orders"] == content(place)
    place.run("INSERT INTO orders VALUES (5000, 'new', 1)", "UPDATE orders SET id = 5001 WHERE id = 5000")
    place.run("TRUNCATE orders", "INSERT INTO orders VALUES (1, 'again', 2)")
    log.drain()
    assert folded(log.events)["public.orders"] == content(place)
    assert len({event["id"] for event in log.events}) == len(log.events)


TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN price AS numeric(8,3);
CREATE TABLE kinds (
  id int PRIMARY KEY, i2 int2, i8 int8, n numeric(20,5), free numeric, f4 float4, f8 float8, b bool, t text,
  v varchar(20), c char(5), raw bytea, u uuid, d date, ti time, ts timestamp, tz timestamptz, iv interval,
  j json, jb jsonb, ai int[], at text[], am mood[], an numeric(6,2)[], atz timestamptz[],
  m mood, p price, ip inet
)
"""


VALUES = (
    "(1, -32768, 9223372036854775807, 123456789012345.12345, 1.10, 1.1, 0.1, true, E'a\\n\"q\" é', 'v', "
    "'ab', "
    "'\\x00ff10', '0fbf5c2e-6f0e-4f60-9d3c-52a3b3f0a001', '2026-02-28', '12:34:56.789', "
    "'2026-01-31 23:59:59.999999', '2026-01-31 23:59:59.999999+02', '1 year 2 mons 3 days 04:05:06', "
    "'{\"a\": [1, 2]}', '{\"b\": null}', '{1,NULL,3}', '{a,\"b,c\",NULL}', '{sad,happy}', '{1.50,-2}', "
    "'{2026-01-01 00:00:00+01}', 'ok', 1.125, '10.0.0.1/8')",
    "(2" + ", NULL" * 27 + ")",
    "(3, 0, -1, -0.00001, 'NaN', 'NaN', '-Infinity', false, '', '', '', '', "
    "'00000000-0000-0000-0000-000000000000', '0001-01-01', '00:00', '0001-01-01 00:00', "
    "'9999-12-31 23:59:59+00', '-1 day', '1', '\"x\"', '{}', '{}', '{}', '{}', '{}', 'sad', 0, '::1')",
    "(4, 1, 1, 1, 1e30, 3.4028235e38, 1.7976931348623157e308, true, repeat('x', 5000), 'ü', 'abcde', "
    "decode(repeat('ab', 5000), 'hex'), gen_random_uuid(), '2000-02-29', '23:59:59', now(), now(), '0', "
    "'[]', '[]', '{-2147483648,2147483647}', '{\"NULL\",\"{}\",\"\"}', '{ok}', '{0}', NULL, 'happy', "
    "99999.999, '1.2.3.4')",
)  # fmt: skip


AS_TEXT = ("free", "u", "ti", "iv", "j", "jb", "m")


def _expected(place: Place) -> list[dict[str, Any]]:
    names = place.columns("kinds")
    casts = {**dict.fromkeys(AS_TEXT, "::text"), "am": "::text[]"}
    wanted = (
        ", ".join(f"{name}{casts.get(name, '')}" for name in names if name != "ip")
        + ", nullif(format('%s', ip), '')"
    )
    return [
        dict(zip(names, row, strict=True)) for row in place.rows(f"SELECT {wanted} FROM kinds ORDER BY id")
    ]


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and expected != expected:
        return isinstance(found, float) and found != found
    if isinstance(expected, datetime) and expected.tzinfo is not None:
        return isinstance(found, datetime) and found.timestamp() == expected.timestamp()
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("when", ["snapshot", "stream"])
def test_types_are_those_of_the_source(place: Place, logs: list[Log], when: str) -> None:
    place.run("SET timezone = 'UTC'", TYPES)
    log = Log(place.source("kinds"))
    logs.append(log)
    if when == "stream":
        log.open()
        log.drain()
    place.run(*(f"INSERT INTO kinds VALUES {values}" for values in VALUES))
    if when == "snapshot":
        log.open()
    rows = [event["after"] for event in log.drain().events]
    expected = _expected(place)
    assert len(rows) == len(expected) == len(VALUES)
    for row, wanted in zip(rows, expected, strict=True):
        if wanted["f4"] is not None and wanted["f4"] == wanted["f4"]:
            wanted["f4"] = pytest.approx(wanted["f4"], rel=1e-7)
            assert row["f4"] == wanted.pop("f4")
        for name, value in wanted.items():
            assert _same(row[name], value), (name, row[name], value)
    schema = log.source.schema_ or ""
    assert "n DECIMAL(20,5), free STRING" in schema
    assert "p DECIMAL(8,3)" in schema
    assert "am ARRAY<STRING>, an ARRAY<DECIMAL(6,2)>, atz ARRAY<TIMESTAMP>" in schema


def test_values_that_no_column_can_hold_are_faults(place: Place, logs: list[Log]) -> None:
    place.run("CREATE TABLE odd (id int PRIMARY KEY, d date, ts timestamptz, n numeric(5,2), a int[])")
    log = Log(place.source("odd"))
    logs.append(log)
    log.open()
    place.run(
        "INSERT INTO odd VALUES (1, 'infinity'), (2, '0044-03-15 BC')",
        "INSERT INTO odd VALUES (3, NULL, '-infinity', NULL), (4, NULL, NULL, 'NaN')",
        "INSERT INTO odd VALUES (5, NULL, NULL, NULL, '{{1,2},{3,4}}'), (6, '2026-01-01', NULL, 1, '{1}')",
    )
    events = log.drain().events
    assert [event["fault"] is None for event in events] == [False] * 5 + [True]
    assert [json.loads(event["fault"]["row"])["id"] for event in events[:5]] == [1, 2, 3, 4, 5]
    assert "column 'd'" in events[0]["fault"]["reason"]
    json_log = Log(place.source("od*"), "pipeline:json:1")
    logs.append(json_log)
    after = [json.loads(event["after"]) for event in json_log.drain().events]
    assert after[0]["d"] == "infinity"
    assert after[3]["n"] == "NaN"
    assert after[4]["a"] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_large_values_survive_updates_that_do_not_send_them(
    place: Place, logs: list[Log], identity: str
) -> None:
    place.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount numeric(10,2))",
        "ALTER TABLE orders ALTER customer SET STORAGE EXTERNAL",
        f"ALTER TABLE orders REPLICA IDENTITY {identity}",
    )
    log = Log(place.source("orders"))
    logs.append(log)
    log.open()
    place.run(
        "INSERT INTO orders VALUES (1, repeat('large', 2000), 1), (2, repeat('other', 2000), 1)",
        "UPDATE orders SET amount = 2",
    )
    events = log.drain().events
    names = [event["unchanged"] for event in events]
    assert names == ([None, None, ["customer"], ["customer"]] if identity == "DEFAULT" else [None] * 4)
    assert folded(events)["public.orders"] == content(place)
    place.run("UPDATE orders SET id = 3 WHERE id = 2")
    gone, made = log.drain().events[4:]
    assert [gone["op"], gone["_key"], made["op"], made["_key"]] == ["d", b'{"id":2}', "c", b'{"id":3}']
    if identity == "DEFAULT":  # the one case in which a value is nowhere
        assert made["unchanged"] == ["customer"]
        return
    assert gone["before"]["customer"] == made["after"]["customer"] == "other" * 2000
    assert folded(log.events)["public.orders"] == content(place)


def test_the_key_is_that_of_the_replica_identity(place: Place, logs: list[Log]) -> None:
    place.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, code text NOT NULL UNIQUE, amount int)",
        "ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_code_key",
        "INSERT INTO orders VALUES (1, 'a', 1)",
    )
    log = Log(place.source("orders", snapshot_chunk_rows=1))
    logs.append(log)
    log.drain()
    place.run("UPDATE orders SET code = 'b'", "UPDATE orders SET id = 5", "DELETE FROM orders")
    events = log.drain().events
    assert [(event["op"], event["_key"]) for event in events] == [
        ("r", b'{"code":"a"}'), ("d", b'{"code":"a"}'), ("c", b'{"code":"b"}'), ("u", b'{"code":"b"}'),
        ("d", b'{"code":"b"}'),
    ]  # fmt: skip
