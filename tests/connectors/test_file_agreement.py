"""The `file` source decodes as streams do: the same values, the same refusals, for the same reasons."""

from __future__ import annotations

import csv
import gzip
import io
import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.connectors.file.source import FileSource
from penstock.frames.hidden import NOTE
from penstock.specs.policies import Batch
from penstock.streams.decode import decode
from penstock.streams.schema import arrow_schema
from tests.flows import NO_STREAMS
from tests.streams.decode.strategies import ODD_TEXTS, fitting, lines
from tests.streams.kit import NIGHTLY

PLAIN = {
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
    "keys": "STRUCT<f: MAP<FLOAT, INT>, ok: MAP<BOOLEAN, INT>, c: MAP<DECIMAL(4,1), DOUBLE>>",
    "more": "ARRAY<MAP<BINARY, STRUCT<x: TINYINT NOT NULL, at: MAP<TIMESTAMP, STRING>>>>",
}
SPECIAL = [
    *("1.255", "1.50", "1e2", '"1.255"', "1700000000", "1700000000000", "1700000000000000", '"1700000000"'),
    *('"2026-01-31T12:00:00.123456789Z"', '"2026-01-31 12:00"', '"2026-01-31T12:00:00-18:30"'),
    *('"2026-01-31T12:00:00+02:"', '"2026-01-31T12:00.5"', '"2026-01-31 12:00:00-05"', '"2026-01-31T12-05"'),
    *('"0001-01-01T00:00:00.000001+00:01"', '"0001-01-01"', '"0000-12-31T23:59:00-01:00"', "253402300800"),
    *("128", "-129", "32768", "2147483648", "9223372036854775808", "1.0", "1e400", '"+INF"', '"INF"'),
]


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


def read(spark: SparkSession, source: FileSource, columns: list[str]) -> tuple[list[Any], list[Any]]:
    """The events of a source, and the notes of its letters, both in the order of the file."""
    rows: list[dict[str, Any]] = []
    query = (
        source.pinned(spark, NO_STREAMS)
        .read(spark, Batch(), NO_STREAMS)
        .coalesce(1)
        .writeStream.foreachBatch(lambda df, _: rows.extend(df.toArrow().to_pylist()))
        .option("checkpointLocation", f"{source.path}-ck-{uuid.uuid4().hex}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    good = [{name: row[name] for name in columns} for row in rows if row[NOTE] is None]
    return good, [SimpleNamespace(**row[NOTE]) for row in rows if row[NOTE] is not None]


def found(spark: SparkSession, source: FileSource, columns: list[str]) -> tuple[list[Any], list[Any]]:
    """The events of a source by their number, and (code, reason) of the letters by their text."""
    good, bad = read(spark, source, columns)
    reasons = [(note.code, note.message) if note.message else source.reason(note.row) for note in bad]
    return sorted(good, key=lambda row: row["n"]), sorted(reasons, key=str)


def expected(body: bytes, content_type: str, ddl: str, **options: Any) -> tuple[list[Any], list[Any]]:
    """The same by the decoder of streams."""
    decoded = decode(body, content_type, arrow_schema(ddl), **options)
    good = pa.Table.from_batches([decoded.batch]).to_pylist()
    return good, sorted(((m.code, m.reason) for m in decoded.misfits), key=str)


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other).replace("datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')")


DAMAGED = [
    *rb"""
{}
{"n": null}
no json
[1]
{"n": 1.0}
{"n": "1"}
{'n': 1}
{
{"n": 1} x
{"n": 1}{"n": 2}
{"n": 1,}
{"n": 01}
{"n": 1.}
{"n": -}
{"n" 1}
{n: 1}
{"N": 1}
{"n": "x", "n": 1}
{"n": 1, "n": "x"}
{"n": 1, "n": null}
{"n": 1, "other": "\ud800"}
{"n": 1, "\ud800": 1}
{"n": 1, "other": "\udc00\ud800"}
{"n": 1, "other": "\ud800\u0041"}
{"n": 1, "other": "\x"}
{"n": 1, "other": "\u00g0"}
{"n": 1, "other": "\
{"\u006e": 1, "text": "\ud83d\ude00\uD83D\uDE00\u00e4\u20ac \"\\\/\b\f\n\r\t"}
{"n": 1, "other": {"a": [1, {}, [ ], -0.5e-7, true, false, null]}, "text": "\u0000"}
{"n": 1, "other": [1,]}
{"n": 1, "other": NaN}
{"n": 1, "other": tru}
{"n": 1, "m": {"1": "x", "1": "2026-01-31", "+1": null}, "deep": {"x": "a", "x": 1}}
{"n": 1, "m": {"1": "x", "+1": null}}
{"n": 1, "keys": {"f": {"0": 1, "-0.0": 2, "0.1": 3, "0.10000000149": 4, "NaN": 5, "1.": 6, "+.5e1": 7}}}
{"n": 1, "keys": {"ok": {"TRUE": 1, "false": 2, "true": 3}, "c": {"1": 1, "1.0": 2, "10e-1": 3}}}
  {"n": 1 , "text": "" }
""".split(b"\n"),
    *(b'{"n": 1, "text": "\xc3\xa4\xf0\x9f\x98\x80"}', b'\xef\xbb\xbf{"n": 1}', b'{"n": 1, "text": "\xff"}'),
    *(b'{"n": 1, "other": "a\xed\xa0\x80"}', b"{\xc3}", b"{\x00", b'{"n": 1}\x00', b'{"n": 1}\t', b" \t"),
    *(b'{"n": 1, "other": "\t"}', b'{"n": 1, "other": "\\n\xc0\x80"}', b'{"\xe2\x82": 1', b'{"n": 1}\x0b'),
]
"""Lines that are damaged, or look like it."""

EXTREME = [
    *("[" * 199 + "1" + "]" * 199, "[" * 200 + "1" + "]" * 200, "[" * 200 + "]" * 200, "[" * 201 + "]" * 201),
    *("1" * 4300, "1" * 4301, "1" * 4301 + ".5", "0." + "1" * 5000, "1e" + "1" * 5000, "-" + "1" * 4300),
    *("0e99999999999999999999", "1e-99999999999999999999", "0E-3000000000", "1e3000000000", '"0e9999999999"'),
]


def test_what_spark_would_take(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader takes any value as STRING, 1e999 for Infinity, and the first object of a line."""
    wrong = [
        *('{"n": 2, "s": 5}', '{"n": 3, "s": {"a": [1.50]}}', '{"n": 4, "d": 1e999}'),
        *('{"n": 5, "s": "\\ud800"}', '{"n": 6} {"n": 7}', '{"n": "8", "unknown": [1.50]}'),
    ]  # fmt: skip
    path = tmp_path / "in"
    path.mkdir()
    (path / "a.json").write_text("\n".join(['{"n": 1, "s": "a", "d": 1}', *wrong]))
    source = FileSource(path=str(path), format="json", schema="n INT, s STRING, d DOUBLE", finite=True)
    events, letters = read(spark, source, ["n", "s", "d"])
    assert events == [{"n": 1, "s": "a", "d": 1.0}]
    assert [note.row for note in letters] == wrong
    found = [source.reason(note.row) for note in letters]
    assert found[0] == ("wrong_type", "column 's' is 5, not a string (STRING)")
    assert [reason and reason[0] for reason in found] == [
        *("wrong_type", "wrong_type", "out_of_range", "not_json", "not_json", "wrong_type")
    ]


def test_compressed_files_and_other_ends_of_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.mkdir()
    (path / "a.json.gz").write_bytes(gzip.compress(b'{"n": 1};\n{"n": 2, "s": "a;b"};;x;'))
    (path / "b.json").write_bytes(b'\xef\xbb\xbf{"n": 3}')
    source = FileSource(
        path=str(path), format="json", schema="n INT, s STRING", finite=True, options={"lineSep": ";"}
    )
    events, letters = read(spark, source, ["n", "s"])
    assert sorted(event["n"] for event in events) == [1, 3]
    assert [note.row for note in letters] == ['{"n": 2, "s": "a', 'b"}', "x"]


@pytest.mark.slow
def test_json(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {**PLAIN, **OTHERS}
    columns = [f"{name} {kind}" for name, kind in kinds.items()]
    made: list[bytes] = []

    @settings(
        max_examples=200 * (100 if NIGHTLY else 1), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(data=st.data(), few=st.sampled_from([columns[i : i + 3] for i in range(0, len(columns), 3)]))
    def collect(data: st.DataObject, few: list[str]) -> None:
        line = data.draw(lines(arrow_schema(", ".join(["n INT NOT NULL", *few]))))
        made.append(
            line.replace(b"\n", b" ").replace(b"\r", b" ")
        )  # files may also have lines that end in CR

    collect()
    odd = [(name, text) for name in kinds for text in (*ODD_TEXTS.split(), *SPECIAL, *EXTREME)]
    valued = [f'{{"n": {i}, "{name}": {text}}}'.encode() for i, (name, text) in enumerate(odd)]
    agree(spark, tmp_path / "in", [*valued, *DAMAGED, *made], ", ".join(["n INT NOT NULL", *columns]))


def agree(spark: SparkSession, path: Path, texts: list[bytes], ddl: str) -> None:
    """Check that files and streams have the same events and letters of some lines."""
    path.mkdir()
    (path / "a.json").write_bytes(b"\n".join([b"{}", *texts]))  # a file may begin with a byte order mark
    source = FileSource(path=str(path), format="json", schema=ddl, finite=True)
    events, letters = read(spark, source, list(arrow_schema(ddl).names))
    decoded = decode(b"\n".join([b"{}", *texts]), "application/x-ndjson", arrow_schema(ddl))
    assert [note.row for note in letters] == [m.value.decode(errors="replace") for m in decoded.misfits]
    wanted = pa.Table.from_batches([decoded.batch]).to_pylist()
    for event, other in zip(events, wanted, strict=True):
        assert same(event, other), [
            (event[name], other[name]) for name in event if event[name] != other[name]
        ]
    reasons = [(note.code, note.message) if note.message else source.reason(note.row) for note in letters]
    assert reasons == [(m.code, m.reason) for m in decoded.misfits]
    assert len(wanted) > 100 < len(reasons)


@pytest.mark.slow
def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {**PLAIN, **OTHERS}
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


@pytest.mark.parametrize("unit", ["epoch_s", "epoch_ms", "epoch_us"])
def test_epochs(spark: SparkSession, tmp_path: Path, unit: Any) -> None:
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
    source = FileSource(path=path, format="json", schema=ddl, timestamps=unit, finite=True)
    events, reasons = found(spark, source, ["n", "at"])
    wanted, why = expected("\n".join(lines).encode(), "application/x-ndjson", ddl, timestamps=unit)
    assert [row["n"] for row in events] == list(range(6))
    assert same(events, wanted)
    assert reasons == why
    assert len(why) == len(odd)
