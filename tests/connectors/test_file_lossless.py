"""What the `file` sink writes, other readers and the `file` source read back as it was."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import re
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.connectors.base import DeliveryId
from penstock.connectors.file.sink import FileSink
from penstock.connectors.file.source import FileSource
from penstock.engine.delivery.events import FrameEvents
from penstock.specs.policies import Batch
from penstock.streams.schema import arrow_schema
from tests.flows import NO_STREAMS

FLAT = (
    "n INT, t TINYINT, s SMALLINT, i INT, b BIGINT, ok BOOLEAN, f FLOAT, d DOUBLE, text STRING, "
    "few DECIMAL(9,2), many DECIMAL(38,10), raw BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ"
)
NESTED = (
    "n INT, texts ARRAY<STRING>, deep ARRAY<STRUCT<x: INT, y: STRING, many: DECIMAL(38,10)>>, "
    "s STRUCT<at: TIMESTAMP, raw: BINARY, inner: STRUCT<d: DOUBLE>>, m MAP<STRING, DECIMAL(20,2)>, "
    "days MAP<DATE, INT>, times MAP<TIMESTAMP, ARRAY<INT>>, k MAP<BIGINT, TIMESTAMP_NTZ>"
)

texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    sorted(
        {"", " ", " a ", '"', '""', 'a"b', "a,b", "a\nb", "\r", "a\r\nb", "\\", 'a\\"', "\t", "'", "null"}
        | {"NULL", "\\N", "#x", "\ufeff", "\u2028", "é☃😀", "NaN", "1", "true", "{}", "-", "=1+1", "\x00"}
    )
)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999)
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)) | st.sampled_from(
    [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), BEFORE_1970]
)
MICROSECOND = timedelta(microseconds=1)
WIDE = Context(prec=60)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, and null."""
    return st.none() | present(kind)


def present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    is_ = pa.types
    if is_.is_list(kind):
        return st.lists(values(kind.value_type), max_size=2)
    if is_.is_map(kind):
        return st.dictionaries(present(kind.key_type), values(kind.item_type), max_size=2).map(
            lambda found: list(found.items())
        )
    if is_.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    if is_.is_integer(kind):
        return integers(kind.bit_width)
    if is_.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if is_.is_decimal(kind):
        limit = 10**kind.precision - 1
        return st.integers(-limit, limit).map(lambda number: Decimal(number).scaleb(-kind.scale, WIDE))
    if is_.is_timestamp(kind):
        return moments.map(lambda at: at.replace(tzinfo=UTC if kind.tz else None))
    simple: dict[pa.DataType, st.SearchStrategy[Any]] = {
        pa.bool_(): st.booleans(),
        pa.string(): texts,
        pa.binary(): st.binary(max_size=5),
        pa.date32(): st.dates() | st.sampled_from([date.min, date.max]),
    }
    return simple[kind]


def tables(ddl: str) -> st.SearchStrategy[pa.Table]:
    """Rows of every type, numbered in the first column."""
    schema = arrow_schema(ddl)
    rows = st.lists(st.tuples(*(values(kind) for kind in schema.types[1:])), min_size=20, max_size=40)
    made = rows.map(
        lambda found: pa.Table.from_pylist(
            [dict(zip(schema.names, (n, *row), strict=True)) for n, row in enumerate(found)], schema=schema
        )
    )
    # Hypothesis tries the simplest table first, which has nulls only.
    return made.filter(lambda table: all(column.null_count < len(column) for column in table.columns))


several = settings(
    max_examples=20 if os.environ.get("PENSTOCK_TEST_NIGHTLY") else 1,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # an example takes seconds, so none is made smaller
    suppress_health_check=list(HealthCheck),
)


def spark_schema(table: pa.Table) -> StructType:
    schema: StructType = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return schema


def written(spark: SparkSession, table: pa.Table, path: Path, format: Any, **fields: Any) -> list[str]:
    """The files of a batch."""
    sink = FileSink(path=str(path), format=format, **fields)
    frame = spark.createDataFrame(table, spark_schema(table))
    assert list(sink.check(frame.schema, NO_STREAMS)) == []
    done = sink.open(NO_STREAMS).write(FrameEvents(frame), DeliveryId("p", "s", "life", 0))
    assert (done.events, [*done.rejected]) == (len(table), [])
    return sorted(str(file) for file in path.rglob(f"*.{format}"))


def plain(value: Any, *, naive: bool = False) -> Any:
    """A value by which two can be compared: NaN is itself, and a map has no order."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return {name: plain(item, naive=naive) for name, item in value.items()}
    if isinstance(value, list):
        made = [plain(item, naive=naive) for item in value]
        is_map = all(isinstance(item, tuple) for item in value)
        return sorted(made, key=repr) if is_map else made
    if isinstance(value, tuple):
        return tuple(plain(item, naive=naive) for item in value)
    if isinstance(value, pd.Timestamp):
        value = value.to_pydatetime()
    if naive and isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def rows(table: pa.Table, *, naive: bool = False) -> list[Any]:
    return sorted((plain(row, naive=naive) for row in table.to_pylist()), key=lambda row: row["n"])


def source_rows(
    spark: SparkSession,
    path: Path | str,
    format: Any,
    table: pa.Table,
    work: Path | None = None,
    **fields: Any,
) -> list[Any]:
    """What the `file` source makes of a directory."""
    spark.sparkContext.setLogLevel("OFF")
    ddl = spark_schema(table).toDDL()
    source = FileSource(path=str(path), format=format, schema=ddl, finite=True, **fields)
    name = f"lossless_{uuid.uuid4().hex}"
    query = (
        source.read(spark, Batch(), NO_STREAMS)
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str((work or Path(path).parent) / f"ck-{name}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found: DataFrame = spark.table(name)
    if "$note" in found.columns:
        assert found.filter("`$note` IS NOT NULL").collect() == []
    back = found.select(*table.column_names).toArrow().cast(table.schema)
    return rows(back)


def from_json(value: Any, kind: pa.DataType) -> Any:
    """A JSON value as documented for its type."""
    is_ = pa.types
    if value is None:
        return None
    if is_.is_list(kind):
        return [from_json(item, kind.value_type) for item in value]
    if is_.is_struct(kind):
        assert set(value) == {field.name for field in kind}  # null or not
        return {field.name: from_json(value[field.name], field.type) for field in kind}
    if is_.is_map(kind):
        keyed: Callable[[str], Any] = str if is_.is_string(kind.key_type) else lambda key: key
        read = {pa.int64(): int}.get(kind.key_type, keyed)
        pairs = ((read(key), item) for key, item in value.items())
        return [(from_json(key, kind.key_type), from_json(item, kind.item_type)) for key, item in pairs]
    if is_.is_float32(kind):
        return pa.scalar(float(value), pa.float32()).as_py()
    if is_.is_floating(kind):
        return float(value)
    if is_.is_decimal(kind):
        # A number that is a double to its reader is still the same decimal.
        exact = Decimal(value) if isinstance(value, str) else Decimal(repr(value))
        assert isinstance(value, str) == (kind.precision > 15)
        return exact.quantize(Decimal(1).scaleb(-kind.scale), context=WIDE)
    if is_.is_binary(kind):
        return base64.b64decode(value)
    if is_.is_date(kind):
        return date.fromisoformat(value)
    return datetime.fromisoformat(value) if is_.is_timestamp(kind) else value


def duck_columns(table: pa.Table) -> str:
    """The columns for DuckDB: what has a type of its own in JSON and CSV by that, the rest as text."""
    names = {pa.bool_(): "BOOLEAN", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE"}
    names |= {pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT"}

    def kind(field: pa.Field) -> str:
        if pa.types.is_decimal(field.type):
            return f"DECIMAL({field.type.precision},{field.type.scale})"
        return "TIMESTAMP" if pa.types.is_timestamp(field.type) else names.get(field.type, "VARCHAR")

    return "{" + ", ".join(f"'{field.name}': '{kind(field)}'" for field in table.schema) + "}"


def duck(query: str, like: pa.Table) -> list[Any]:
    """The rows of a query; bytes are text in base64."""
    with duckdb.connect() as db:
        found = db.sql(query).to_arrow_table().select(like.column_names).to_pylist()
    for row in found:
        if isinstance(row.get("raw"), str):
            row["raw"] = base64.b64decode(row["raw"])
    return sorted((plain(row, naive=True) for row in found), key=lambda row: row["n"])


@pytest.fixture
def out(tmp_path: Path) -> Callable[[], Path]:
    """A new directory for each example."""
    return lambda: tmp_path / uuid.uuid4().hex


@pytest.mark.slow
@pytest.mark.parametrize("ddl", [FLAT, NESTED], ids=["flat", "nested"])
def test_json(spark: SparkSession, out: Callable[[], Path], ddl: str) -> None:
    @several
    @given(table=tables(ddl))
    def check(table: pa.Table) -> None:
        path = out()
        files = written(spark, table, path, "json")
        whole = pa.struct(list(table.schema))
        lines = [json.loads(line) for file in files for line in Path(file).read_text().split("\n") if line]
        found = [plain(from_json(line, whole)) for line in lines]
        assert sorted(found, key=lambda row: row["n"]) == rows(table)
        if ddl == FLAT:
            options = f"format='newline_delimited', columns={duck_columns(table)}"
            assert duck(f"SELECT * FROM read_json({files}, {options})", table) == rows(table, naive=True)
            frames = [pd.read_json(file, lines=True, dtype=False, convert_dates=False) for file in files]
            frame = pd.concat(frames).sort_values("n")
            assert [None if pd.isna(text) else text for text in frame["text"]] == table["text"].to_pylist()
        assert source_rows(spark, path, "json", table) == rows(table)

    check()


@pytest.mark.slow
def test_csv(spark: SparkSession, out: Callable[[], Path]) -> None:
    @several
    @given(table=tables(FLAT))
    def check(table: pa.Table) -> None:
        path = out()
        files = written(spark, table, path, "csv")
        expected = rows(table)
        found: list[dict[str, str]] = []
        for file in files:
            with open(file, newline="") as opened:
                found += csv.DictReader(opened)
        found.sort(key=lambda row: int(row["n"]))
        assert [row["text"] for row in found] == [row["text"] or "" for row in expected]
        frame = pd.concat([pd.read_csv(file, dtype=str, keep_default_na=False) for file in files])
        frame = frame.sort_values("n", key=lambda numbers: numbers.astype(int))
        pairs = zip(frame["text"].tolist(), (row["text"] or "" for row in expected), strict=True)
        assert [pair for pair in pairs if pair[0] != pair[1] and "\0" not in pair[1]] == []  # as C ends text
        readers: dict[str, Callable[[str], Any]] = {"at": datetime.fromisoformat, "many": Decimal, "b": int}
        for name, read in {**readers, "raw": base64.b64decode}.items():
            made = [read(row[name]) if row[name] else None for row in found]
            assert made == [row[name] or None if name == "raw" else row[name] for row in expected]
        read_csv = f"SELECT * FROM read_csv({files}, header=true, auto_detect=false, delim=',', quote='\"', "
        read_csv += f"escape='\"', allow_quoted_nulls=false, columns={duck_columns(table)})"
        assert duck(read_csv, table) == rows(table, naive=True)
        assert source_rows(spark, path, "csv", table) == expected

    check()


@pytest.mark.slow
@pytest.mark.parametrize("ddl", [FLAT, NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_columns(spark: SparkSession, out: Callable[[], Path], format: str, ddl: str) -> None:
    @several
    @given(table=tables(ddl))
    def check(table: pa.Table) -> None:
        path = out()
        if format == "orc":
            table = table.select(
                [f.name for f in table.schema if not re.search("timestamp|map", str(f.type))]
            )
        files = written(spark, table, path, format)
        if format == "orc":
            assert rows(pa.concat_tables(pa.orc.read_table(file) for file in files)) == rows(table)
        elif format == "parquet":
            back = pa.concat_tables(pa.parquet.read_table(file) for file in files)
            assert rows(back) == rows(table)
            if ddl == FLAT:
                assert duck(f"SELECT * FROM read_parquet({files})", table) == rows(table, naive=True)
                assert pd.read_parquet(files[0])["b"].notna().sum() <= len(table)
        assert source_rows(spark, path, format, table) == rows(table)

    check()


def test_what_a_line_cannot_hold_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    given_ = ["a", None, "b\nc", "", "d\r", " e"]
    table = pa.table({"v": given_})
    for format, bad in (("text", [None, "b\nc", "d\r"]), ("csv", [None])):
        sink = FileSink(path=str(tmp_path / format), format=format)  # type: ignore[arg-type]
        events = FrameEvents(spark.createDataFrame(table))
        done = sink.open(NO_STREAMS).write(events, DeliveryId("p", "s", "life", 0))
        rejected = [*done.rejected]
        assert done.events == len(given_) - len(bad)
        refused = [json.loads(each.row).get("v") for each in rejected]
        assert sorted(refused, key=str) == sorted(bad, key=str)
        assert {each.code for each in rejected} == {"no_form"}
        assert "'v'" in rejected[0].message
    lines = [line for file in (tmp_path / "text").rglob("*.txt") for line in file.read_text().splitlines()]
    assert sorted(lines) == ["", " e", "a"]
    read = [row for file in (tmp_path / "csv").rglob("*.csv") for row in csv.reader(file.open(newline=""))]
    assert sorted(row[0] for row in read if row != ["v"]) == ["", " e", "a", "b\nc", "d\r"]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_batch_that_is_rolled_loses_nothing(spark: SparkSession, tmp_path: Path, format: str) -> None:
    moment = BEFORE_1970
    values = ["", " a ", 'b"\nc', None, "\\", "d,e"] * 50
    table = pa.table(
        {
            "n": pa.array(range(300), pa.int32()),
            "text": values,
            "raw": pa.array([None if value is None else value.encode() for value in values], pa.binary()),
            "at": pa.array([moment + n * MICROSECOND for n in range(300)], pa.timestamp("us", "UTC")),
            "many": pa.array([Decimal("12345678901234567890.0123456789")] * 300, pa.decimal128(38, 10)),
        }
    )
    files = written(spark, table, tmp_path / "out", format, max_file_bytes=2000)
    assert len(files) > 5
    assert source_rows(spark, tmp_path / "out", format, table) == rows(table)
