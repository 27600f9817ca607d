"""Events leave a stream as files that others read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from penstock.errors import Invalid
from penstock.streams.events import stored_schema
from penstock.streams.export import export
from penstock.streams.log import Log
from tests.streams.kit import events, make_stream, opened
from tests.streams.test_verify import flip, segment

DDL = "id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(8,2), data BINARY, tags ARRAY<STRING>"


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Log]:
    with opened(make_stream(tmp_path / "raw")) as log:
        schema = stored_schema(None)
        rows = [
            {"value": b"one", "_key": b"k", "_headers": [("a", "1")]},
            {"value": b"\xff\x00", "_key": None, "_headers": None},
        ]
        log.append(pa.RecordBatch.from_pylist(rows, schema))
        log.append(events(3))
        yield log


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Log]:
    with opened(make_stream(tmp_path / "typed", schema=DDL)) as log:
        old = pa.record_batch({"id": pa.array([1], pa.int32()), "gone": ["x"]})
        log.append(old)  # before the schema was changed
        table = pa.RecordBatch.from_pylist(
            [
                {
                    "id": 2,
                    "name": 'a "b", c',
                    "at": 1_700_000_000_500_000,
                    "data": b"\x00\x01",
                    "tags": ["x", "y"],
                },
                {"id": 3, "name": "", "_key": b"k3"},
            ],
            stored_schema(DDL),
        )
        log.append(table)
        yield log


def exported(log: Log, ddl: str | None, format: str, **options: object) -> bytes:
    target = io.BytesIO()
    export(log, ddl, target, format, **options)  # type: ignore[arg-type]
    return target.getvalue()


def lines(data: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in data.splitlines()]


def test_raw_events_as_lines(raw: Log) -> None:
    found = lines(exported(raw, None, "ndjson"))
    assert found[:2] == [
        {"value": "one", "key": "k", "headers": {"a": "1"}},
        {"value": {"base64": "/wA="}, "key": None, "headers": None},
    ]
    assert [event["value"] for event in found[2:]] == ["e0", "e1", "e2"]


def test_typed_events_as_lines(typed: Log) -> None:
    found = lines(exported(typed, DDL, "ndjson"))
    assert found[0] == {"id": 1, "name": None, "at": None, "price": None, "data": None, "tags": None}
    assert found[1]["at"] == "2023-11-14T22:13:20.5Z"
    assert found[1]["tags"] == ["x", "y"]
    assert found[1]["data"] == "AAE="
    detailed = lines(exported(typed, DDL, "ndjson", details=True))
    assert [(event["_offset"], event["_key"]) for event in detailed] == [(0, None), (1, None), (2, "k3")]
    assert all(str(event["_time"]).endswith("Z") for event in detailed)


def test_csv_is_read_back(typed: Log, raw: Log) -> None:
    found = pl.read_csv(exported(typed, DDL, "csv"))
    assert found.columns == ["id", "name", "at", "price", "data", "tags"]
    assert found["id"].to_list() == [1, 2, 3]
    assert found["name"].to_list() == [None, 'a "b", c', ""]
    assert json.loads(found["tags"][1]) == ["x", "y"]
    assert pl.read_csv(exported(raw, None, "csv"))["value"].to_list()[2:] == ["e0", "e1", "e2"]


def test_parquet_and_arrow_keep_types(typed: Log, raw: Log) -> None:
    for log, ddl in ((typed, DDL), (raw, None)):
        parquet = pa.parquet.read_table(io.BytesIO(exported(log, ddl, "parquet", details=True)))
        arrow = pa.ipc.open_stream(exported(log, ddl, "arrow", details=True)).read_all()
        assert arrow.column_names[:2] == ["_offset", "_time"]
        assert parquet.to_pylist() == arrow.to_pylist()
        assert arrow.column("_offset").to_pylist() == list(range(log.bounds().next))
    assert arrow.column_names[2:] == ["value", "key", "headers"]


@pytest.mark.parametrize("format", ["ndjson", "csv", "parquet", "arrow"])
def test_an_empty_export_is_a_file_that_can_be_read(raw: Log, tmp_path: Path, format: str) -> None:
    target = tmp_path / f"out.{format}"
    assert export(raw, None, target, format, start=5) == 0
    assert target.exists()
    if format == "parquet":
        assert pa.parquet.read_table(target).num_rows == 0


def test_a_part_with_progress(raw: Log, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    target = tmp_path / "out.ndjson"
    count = export(
        raw, None, target, start=1, stop=4, progress=lambda done, total: seen.append((done, total))
    )
    assert count == 3
    assert [event["value"] for event in lines(target.read_bytes())] == [{"base64": "/wA="}, "e0", "e1"]
    assert seen[-1] == (3, 3)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.ndjson"]


def test_what_is_lost_is_told(raw: Log, tmp_path: Path) -> None:
    flip(segment(tmp_path / "raw", 0), -20)
    lost: list[tuple[int, int, str]] = []
    count = export(raw, None, io.BytesIO(), lost=lambda *gap: lost.append(gap))
    assert (count, lost) == (2, [(2, 5, "wrong checksum")])


def test_an_export_that_fails_leaves_nothing_behind(raw: Log, tmp_path: Path) -> None:
    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "out.parquet"
    target.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        export(raw, None, target, "parquet", progress=fail)
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.parquet"]
    with pytest.raises(Invalid, match="did you mean 'parquet'"):
        export(raw, None, target, "parquett")
