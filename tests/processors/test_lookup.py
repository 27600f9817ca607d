from __future__ import annotations

import datetime
import json
import os
import sqlite3
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pydantic import ValidationError

from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.policy import UNRESTRICTED
from penstock.processors import lookup
from penstock.processors.base import Desk, Refused, Stage
from penstock.processors.lookup import LookupProcessor
from tests.processors.arrow_kit import batch_of, opened, refusals, run, stage
from tests.servers import connect

EVENTS = batch_of(
    "id INT, code STRING", [{"id": i, "code": c} for i, c in enumerate(["DE", "XX", None, "FR"])]
)
ROWS = [
    {"code": "DE", "name": "Germany", "since": "1990-10-03"},
    {"code": "FR", "name": "old", "since": None},
    {"code": "FR", "name": "France", "since": None},
    {"code": None, "name": "nobody", "since": None},
]
DE = {"name": "Germany", "since": datetime.date(1990, 10, 3)}
FR = {"name": "France", "since": None}
NONE: dict[str, Any] = {"name": None, "since": None}
STEP: dict[str, Any] = {"on": {"code": "code"}, "columns": "name STRING, since DATE NOT NULL"}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name of the file tells."""
    if path.suffix == ".csv":
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        dates = [row["since"] and datetime.date.fromisoformat(row["since"]) for row in rows]
        table = (
            pa.Table.from_pylist(rows).drop(["since"]).append_column("since", pa.array(dates, pa.date32()))
        )
        pa.parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.jsonl", "t.parquet"])
def test_columns_of_a_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, ROWS)
    result = run(
        LookupProcessor(file={"path": str(path)}, **{**STEP, "columns": "name STRING, since DATE"}), EVENTS
    )
    assert [{k: row[k] for k in NONE} for row in result.rows] == [DE, NONE, NONE, FR]
    assert result.offsets == [0, 1, 2, 3]


def test_what_is_not_there(tmp_path: Path) -> None:
    step = {**STEP, "file": {"path": str(write(tmp_path / "t.csv", ROWS))}, "into": "info"}
    assert [row["info"] for row in run(LookupProcessor(**step), EVENTS).rows] == [DE, None, None, FR]
    assert run(LookupProcessor(**step, missing="drop"), EVENTS).offsets == [0, 3]
    kept = run(LookupProcessor(**step, missing="dead_letter"), EVENTS)
    assert kept.offsets == [0, 3]
    assert kept.bad == {1: "not_found", 2: "not_found"}
    assert kept.message(1) == 'the table has no row with code = "XX"'


def test_several_keys_have_the_types_of_events(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b;v\n1;x;10\n01;y;20\n;x;30\n")
    step = LookupProcessor(
        file={"path": str(tmp_path / "t.csv"), "delimiter": ";"},
        on={"N": "a", "s": "b"},
        columns="v INT, b STRING",
    )
    events = batch_of("n BIGINT, s STRING", [{"n": 1, "s": "y"}, {"n": 1, "s": "z"}, {"n": None, "s": "x"}])
    assert [(row["v"], row["b"]) for row in run(step, events).rows] == [(20, "y"), (None, None), (None, None)]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", ROWS)
    step = LookupProcessor(file={"path": str(path)}, **STEP, into="info", refresh_ms=100)
    work = opened(step, EVENTS)
    assert work(EVENTS).rows[3]["info"] == FR
    write(path, [{**ROWS[1], "name": "new"}])
    assert work(EVENTS).rows[3]["info"] == FR  # not yet
    time.sleep(0.12)
    assert work(EVENTS).rows[3]["info"]["name"] == "new"
    path.write_text("[{")
    time.sleep(0.12)
    broken = work(EVENTS)
    assert broken.rows[3]["info"]["name"] == "new"
    assert broken.outcome.logs[0].startswith("the table was not reloaded: [lookup_table]")
    path.unlink()
    time.sleep(0.12)
    assert "No such file" in work(EVENTS).outcome.logs[0]
    once = opened(LookupProcessor(file={"path": str(write(path, ROWS))}, **STEP, into="info"), EVENTS)
    assert once(EVENTS).rows[0]["info"] == DE
    write(path, ROWS[1:])
    assert once(EVENTS).rows[0]["info"] == DE


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "code,name,since\nDE,a,today\n", "row 1 of the table: column 'since' is \"today\""),
        ("t.csv", "code,name\nDE,a\n", "no column 'since'; it has: code, name"),
        ("t.csv", "code,name,since\nDE\n", "cannot read the table"),
        ("t.jsonl", '{"code": "DE"}\n{"code": 7}', "row 2 of the table: column 'code' is 7"),
        ("t.parquet", "no", "cannot read the table"),
    ],
)
def test_tables_that_do_not_fit_fail_the_flow(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    step = LookupProcessor(
        file={"path": str(tmp_path / name)}, **{**STEP, "columns": "name STRING, since DATE"}
    )
    with pytest.raises(Fault) as fault:
        run(step, EVENTS)
    assert message in str(fault.value)


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.parquet"])
def test_a_table_is_bounded(tmp_path: Path, name: str) -> None:
    step = {**STEP, "file": {"path": str(write(tmp_path / name, ROWS))}, "columns": "name STRING"}
    with pytest.raises(Fault, match=r"\[lookup_too_large\] the table has more than 3 rows"):
        run(LookupProcessor(**step, max_rows=3), EVENTS)
    assert run(LookupProcessor(**step, max_rows=4), EVENTS)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE countries (code TEXT, name TEXT, people NUMERIC)")
        db.executemany(
            "INSERT INTO countries VALUES (?, ?, ?)", [("DE", "Germany", 83.5), ("FR", "France", 68)]
        )
    return path


def test_a_database_is_read_once_for_all_tasks(database: Path, tmp_path: Path) -> None:
    source = {"url": f"sqlite:///{database}", "table": "countries"}
    step = LookupProcessor(
        database=source, on={"code": "code"}, columns="name STRING, people DOUBLE", refresh_ms=3_600_000
    )
    (tmp_path / "state").mkdir()
    at = stage(state=tmp_path / "state")
    result = run(step, EVENTS, at)
    assert [(row["name"], row["people"]) for row in result.rows][::3] == [("Germany", 83.5), ("France", 68.0)]
    with sqlite3.connect(database) as db:
        db.execute("UPDATE countries SET name = 'changed'")
    assert first_name(step, at) == "Germany"
    (snapshot,) = (path for path in (tmp_path / "state" / "lookups").iterdir() if not path.suffix)
    before = time.time() - 60
    os.utime(snapshot, (before, before))  # the clock of a file system can be behind
    assert first_name(step, at) == "Germany"
    os.utime(snapshot, (0, 0))  # more than an hour later
    assert first_name(step, at) == "changed"


def first_name(step: LookupProcessor, at: Stage) -> Any:
    """What a task of another process finds."""
    lookup._TABLES.clear()
    return step.open(Desk(at.step, at.site.flow, policy=UNRESTRICTED))(EVENTS).batch.column("name")[0].as_py()


def test_a_new_run_reads_the_database_anew(database: Path, tmp_path: Path) -> None:
    source = {"url": f"sqlite:///{database}", "query": "SELECT upper(name) AS name, code FROM countries"}
    step: dict[str, Any] = {"database": source, "on": {"code": "code"}, "columns": "name STRING"}
    at = stage(state=tmp_path / "state")
    assert run(LookupProcessor(**step), EVENTS, at).rows[0]["name"] == "GERMANY"
    with sqlite3.connect(database) as db:
        db.execute("UPDATE countries SET name = 'changed'")
    assert run(LookupProcessor(**step), EVENTS, at).rows[0]["name"] == "CHANGED"


def test_a_database_that_is_away_may_come_back(database: Path, tmp_path: Path) -> None:
    step = {"on": {"code": "code"}, "columns": "name STRING"}
    away = {"url": f"sqlite:///{tmp_path}/nowhere/x.db", "table": "countries"}
    with pytest.raises(Retryable, match="unable to open database file"):
        run(LookupProcessor(database=away, **step), EVENTS)
    large = {"url": f"sqlite:///{database}", "query": "SELECT name, code FROM countries"}
    with pytest.raises(Fault, match="lookup_too_large"):
        run(LookupProcessor(database=large, **step, max_rows=1), EVENTS)


def test_postgres(postgres_database: str) -> None:
    with connect(postgres_database) as db:
        db.execute("CREATE SCHEMA geo")
        db.execute(
            "CREATE TABLE geo.countries (code TEXT, at TIMESTAMPTZ, n NUMERIC(9,2), id UUID, tags TEXT[])"
        )
        row = "'DE', '2026-01-31T12:00:00+01', 1.5, '3f2504e0-4f89-11d3-9a0c-0305e82c3301', '{a,b}'"
        db.execute(f"INSERT INTO geo.countries VALUES ({row})")
    plain = postgres_database.replace("postgresql+psycopg:", "postgres:")
    step: dict[str, Any] = {
        "on": {"code": "code"},
        "columns": "at TIMESTAMP, n DECIMAL(9,2), id STRING, tags ARRAY<STRING>",
        "into": "info",
    }
    found = run(LookupProcessor(database={"url": plain, "table": "geo.countries"}, **step), EVENTS).rows[0][
        "info"
    ]
    assert found == {
        "at": datetime.datetime(2026, 1, 31, 11, tzinfo=datetime.UTC),
        "n": Decimal("1.50"),
        "id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "tags": ["a", "b"],
    }
    with pytest.raises(Fault, match="refuses the query"):
        run(LookupProcessor(database={"url": plain, "table": "nowhere"}, **step), EVENTS)
    url = plain.replace("penstock@", "penstock:secret@").rpartition("/")[0] + "/nowhere"
    with pytest.raises(Retryable) as error:
        run(LookupProcessor(database={"url": url, "table": "x"}, **step), EVENTS)
    assert "secret" not in str(error.value)


def test_a_test_run_is_given_the_rows_of_a_database(tmp_path: Path) -> None:
    there = {"url": "postgresql://nobody@127.0.0.1:1/x", "table": "t"}
    step = LookupProcessor(database=there, **{**STEP, "columns": "name STRING, since DATE"}, into="info")
    rows = [{"code": "DE", "name": "Germany", "since": "1990-10-03"}]
    assert run(step, EVENTS, stage(testing=True, given=rows)).rows[0]["info"] == DE
    with pytest.raises(Refused) as refused:
        run(step, EVENTS, stage(testing=True))
    assert refused.value.code == "no_answer"
    with pytest.raises(Fault, match="since"):
        run(step, EVENTS, stage(testing=True, given=[{"code": "DE", "since": 7}]))
    file = LookupProcessor(file={"path": str(write(tmp_path / "t.csv", ROWS))}, **STEP, into="info")
    assert run(file, EVENTS, stage(testing=True)).rows[3]["info"] == FR


@pytest.mark.parametrize(
    ("options", "code", "path"),
    [
        ({"on": {"cod": "code"}}, "unknown_column", "on.cod"),
        ({"columns": "name TEXT"}, "invalid_schema", "columns"),
        ({"columns": "ID INT"}, "duplicate_column", "columns"),
        ({"columns": "code INT"}, "sql_type", "columns"),
        ({"file": {"path": "/nonexistent.csv"}}, "unreadable_file", "file.path"),
        ({"file": {"path": "/nonexistent.txt"}}, "missing_field", "file.format"),
        ({"file": None, "database": {"url": "nope", "table": "t"}}, "invalid_value", "database.url"),
        ({"file": None, "database": {"url": "oracle://x/y", "table": "t"}}, "missing_driver", "database.url"),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, Any], code: str, path: str) -> None:
    file = {"path": str(write(tmp_path / "t.csv", ROWS))}
    (problem,) = refusals(LookupProcessor(**{**STEP, "file": file, **options}), EVENTS)
    assert (problem.code, problem.path) == (code, path)


def test_one_source() -> None:
    for sources in ({}, {"file": {"path": "x"}, "database": {"url": "x", "table": "t"}}):
        with pytest.raises(ValidationError, match="either"):
            LookupProcessor(**STEP, **sources)
    with pytest.raises(ValidationError, match="either"):
        LookupProcessor(**STEP, database={"url": "x"})
