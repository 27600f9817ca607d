"""The `file` source decodes as streams do: the same values, the same refusals, for the same reasons."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.connectors.file_source import FileSource
from penstock.specs.policies import Batch
from penstock.streams.decode import decode
from penstock.streams.schema import arrow_schema
from tests.flows import NO_STREAMS
from tests.streams.decode.strategies import ODD_TEXTS, fitting

NATIVE = {
    "t": "TINYINT",
    "s": "SMALLINT",
    "i": "INT",
    "b": "BIGINT",
    "d": "DOUBLE",
    "ok": "BOOLEAN",
    "text": "STRING",
    "day": "DATE",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
}
OTHERS = {
    "f": "FLOAT",
    "few": "DECIMAL(5,2)",
    "many": "DECIMAL(38,10)",
    "raw": "BINARY",
    "tags": "ARRAY<TIMESTAMP>",
    "deep": "STRUCT<x: INT, y: DECIMAL(4,1)>",
    "m": "MAP<BIGINT, DATE>",
}
SPECIAL = [
    *("1.255", "1.50", "1e2", '"1.255"', "1700000000", "1700000000000", "1700000000000000", '"1700000000"'),
    *('"2026-01-31T12:00:00.123456789Z"', '"2026-01-31 12:00"', '"2026-01-31T12:00:00-18:30"'),
    *('"2026-01-31T12:00:00+02:"', '"2026-01-31T12:00.5"', '"2026-01-31 12:00:00-05"', '"2026-01-31T12-05"'),
    *('"0001-01-01T00:00:00.000001+00:01"', '"0001-01-01"', '"0000-12-31T23:59:00-01:00"', "253402300800"),
    *("128", "-129", "32768", "2147483648", "9223372036854775808", "1.0", "1e400", '"+INF"', '"INF"'),
]


def indistinct(kind: str, text: str) -> bool:
    """Whether Spark's own reader cannot be brought to apply the rule; `exact: true` does."""
    if "\\ud8" in text:  # half of a surrogate pair
        return True
    if kind == "STRING":
        return not text.startswith('"')
    return kind == "DOUBLE" and ("INF" in text.upper() or "e400" in text or "E+" in text or "e30" in text)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda name: json.loads("x" + name))
    except ValueError:
        return False
    return "\n" not in text and "\r" not in text


def pairs(kinds: dict[str, str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Columns with a JSON text each: those that fit, or come close, and odd ones."""
    schema = arrow_schema(", ".join(f"{name} {kind}" for name, kind in kinds.items()))
    return st.lists(
        st.sampled_from(sorted(kinds)).flatmap(
            lambda name: st.tuples(st.just(name), fitting(schema.field(name).type))
        ),
        min_size=60,
        max_size=120,
    )


several = settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def found(spark: SparkSession, source: FileSource, columns: list[str]) -> tuple[list[Any], list[Any]]:
    """The events of a source by their number, and (code, reason) of the letters by their text."""
    name = f"agreed_{uuid.uuid4().hex}"
    query = (
        source.pinned(spark, NO_STREAMS)
        .read(spark, Batch(), NO_STREAMS)
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", f"{source.path}-ck-{name}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.table(name)
    good = table.filter("`$note` IS NULL").select(*columns).toArrow().to_pylist()
    bad = [row[0] for row in table.filter("`$note` IS NOT NULL").select("`$note`").collect()]
    reasons = [(note.code, note.message) if note.message else source.reason(note.row) for note in bad]
    return sorted(good, key=lambda row: row["n"]), sorted(reasons, key=str)


def expected(body: bytes, content_type: str, ddl: str, **options: Any) -> tuple[list[Any], list[Any]]:
    """The same by the decoder of streams."""
    decoded = decode(body, content_type, arrow_schema(ddl), **options)
    good = pa.Table.from_batches([decoded.batch]).to_pylist()
    return good, sorted(((m.code, m.reason) for m in decoded.misfits), key=str)


def shapes(reasons: list[Any]) -> list[Any]:
    """Codes and reasons without the value: a number that Spark reads as text is shown as it is written.

    Of a null, Spark's reader does not tell whether the column is missing.
    """
    without = (
        (code, re.sub(r"(column '.*?') is .*?, (?=[a-z])", r"\1: ", reason)) for code, reason in reasons
    )
    return sorted((code, reason.replace(" is null", " is missing")) for code, reason in without)


def same(one: list[Any], other: list[Any]) -> bool:
    return repr(one) == repr(other).replace("datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')")


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [NATIVE, OTHERS], ids=["spark", "python"])
def test_json(spark: SparkSession, tmp_path: Path, kinds: dict[str, str]) -> None:
    ddl = "n INT NOT NULL, " + ", ".join(f"{name} {kind}" for name, kind in kinds.items())

    @several
    @given(some=pairs(kinds))
    def check(some: list[tuple[str, str]]) -> None:
        odd = [text for text in (*ODD_TEXTS.split(), *SPECIAL) if is_json(text)]
        some = [*some, *((name, text) for name in kinds for text in odd)]
        if kinds is NATIVE:
            some = [(name, text) for name, text in some if not indistinct(kinds[name], text)]
        lines = [f'{{"n": {i}, "{name}": {text}}}' for i, (name, text) in enumerate(some)]
        lines += ["{}", '{"n": null}', "no json", "[1]", "", '{"n": 1.0}', '{"n": "1"}', "{'n': 1}"]
        path = tmp_path / uuid.uuid4().hex
        path.mkdir()
        (path / "a.json").write_text("\n".join(lines))
        source = FileSource(path=str(path), format="json", schema=ddl, finite=True)
        events, reasons = found(spark, source, ["n", *kinds])
        wanted, why = expected("\n".join(lines).encode(), "application/x-ndjson", ddl)
        assert [row for row in events if row not in wanted and "nan" not in repr(row)] == []
        assert [row["n"] for row in events] == [row["n"] for row in wanted]
        assert same(events, wanted)
        assert shapes(reasons) == shapes(why)
        assert len(why) > 50

    check()


@pytest.mark.slow
def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {**NATIVE, **OTHERS}
    ddl = "n INT NOT NULL, " + ", ".join(f"{name} {kind}" for name, kind in kinds.items())

    @several
    @given(some=pairs(kinds))
    def check(some: list[tuple[str, str]]) -> None:
        odd = [text for text in (*ODD_TEXTS.split(), *SPECIAL) if is_json(text)]
        some = [*some, *((name, text) for name in kinds for text in odd)]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["n", *kinds])
        for i, (name, value) in enumerate(some):
            plain = json.loads(value) if value.startswith('"') else value
            if "\x00" not in plain and plain.isprintable():
                writer.writerow([i, *(plain if name == each else "" for each in kinds)])
        path = tmp_path / uuid.uuid4().hex
        path.mkdir()
        (path / "a.csv").write_text(text.getvalue() + "1,2\nx\n")
        source = FileSource(path=str(path), format="csv", schema=ddl, finite=True)
        events, reasons = found(spark, source, ["n", *kinds])
        wanted, why = expected((path / "a.csv").read_bytes(), "text/csv", ddl)
        assert same(events, wanted)
        assert reasons == why

    check()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("unit", ["epoch_s", "epoch_ms", "epoch_us"])
def test_epochs(spark: SparkSession, tmp_path: Path, unit: Any, exact: bool) -> None:
    ddl = "n INT, at TIMESTAMP"
    factor = {"epoch_s": 1, "epoch_ms": 1000, "epoch_us": 1_000_000}[unit]
    numbers = [0, -1, 1_700_000_000 * factor, -62_135_596_800 * factor, 253_402_300_800 * factor - 1]
    odd = [
        -62_135_596_800 * factor - 1,
        253_402_300_800 * factor,
        2**70,
        1.5,
        '"2026-01-31T12:00:00Z"',
        "true",
    ]
    lines = [f'{{"n": {n}, "at": {value}}}' for n, value in enumerate([*numbers, "null", *odd])]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    path = str(tmp_path / "in")
    source = FileSource(path=path, format="json", schema=ddl, timestamps=unit, finite=True, exact=exact)
    events, reasons = found(spark, source, ["n", "at"])
    wanted, why = expected("\n".join(lines).encode(), "application/x-ndjson", ddl, timestamps=unit)
    assert [row["n"] for row in events] == list(range(6))
    assert same(events, wanted)
    assert reasons == why
    assert len(why) == len(odd)


def test_the_exact_reader_tells_apart_what_spark_does_not(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"n": 1, "s": "a", "d": 1}', '{"n": 2, "s": 5}', '{"n": 3, "d": 1e400}', '{"n": 4} {"n": 5}']
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    ddl = "n INT, s STRING, d DOUBLE"
    source = FileSource(path=str(tmp_path / "in"), format="json", schema=ddl, finite=True, exact=True)
    events, reasons = found(spark, source, ["n", "s", "d"])
    assert events == [{"n": 1, "s": "a", "d": 1.0}]
    assert [code for code, _ in reasons] == ["not_json", "out_of_range", "wrong_type"]
    assert ("wrong_type", "column 's' is 5, not a string (STRING)") in reasons
