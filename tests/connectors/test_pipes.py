"""The source `stdin` and the sink `stdout`, on a real pipe and a real file."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from penstock.connectors import stdin
from penstock.connectors.received import Ended
from penstock.connectors.stdin import StdinSource
from penstock.errors import Invalid
from penstock.testing.flows import Bench
from penstock.testing.sink_suite import SinkSuite, SinkSystem
from penstock.testing.source_suite import Events, SourceSuite, SourceSystem
from tests.flows import NO_STREAMS


@pytest.fixture(autouse=True)
def logs_on_standard_error() -> Iterator[None]:
    """As the command line has it: what is logged is no event on standard output."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


class Pipe(SourceSystem):
    killable = False

    def __init__(self) -> None:
        self.end, self.begin = os.pipe()

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "stdin", "schema": "id BIGINT, name STRING", **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        os.write(self.begin, "".join(json.dumps(event) + "\n" for event in events).encode())


@pytest.mark.slow
class TestStdinSource(SourceSuite):
    @pytest.fixture
    def system(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
        pipe = Pipe()
        monkeypatch.setattr(stdin, "INPUT", stdin._Input())
        with os.fdopen(pipe.end) as reader:
            monkeypatch.setattr(sys, "stdin", reader)
            yield pipe
        os.close(pipe.begin)


class Terminal(SinkSystem):
    keyed = True

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self.captured, self.text = captured, ""

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "stdout", **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        self.text += self.captured.readouterr().out
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.mark.slow
class TestStdoutSink(SinkSuite):
    @pytest.fixture
    def system(self, capsys: pytest.CaptureFixture[str]) -> Terminal:
        return Terminal(capsys)


@pytest.mark.slow
def test_csv_has_one_header_and_text_one_column(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"id": "seq", "a,b": "concat('x\"', chr(10), 'y')", "n": "CAST(NULL AS STRING)", "e": "''"}
    source = {"type": "generate", "count": 4, "row": row}
    bench, small = Bench(spark, tmp_path), {"max_events": 2, "max_inflight": 1}
    with (tmp_path / "out.csv").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        state = bench.run(source, {"type": "stdout", "format": "csv"}, batch=small)
    assert state.outcome == "completed", state.error
    rows = "".join(f'{number},"x""\ny",,""\n' for number in range(4))
    assert (tmp_path / "out.csv").read_text() == f'id,"a,b",n,e\n{rows}'

    lines = {"value": "CASE seq WHEN 1 THEN concat('two', chr(10), 'lines') WHEN 2 THEN NULL ELSE 'ok' END"}
    text = bench.part("text")
    with (tmp_path / "out.txt").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        state = text.run({"type": "generate", "count": 4, "row": lines}, {"type": "stdout", "format": "text"})
    assert state.outcome == "completed", state.error
    assert (tmp_path / "out.txt").read_text() == "ok\nok\n"
    assert {letter["code"] for letter in text.letters()} == {"no_form"}


def received(text: bytes, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> list[Any]:
    """The values that a source makes of an input."""
    monkeypatch.setattr(stdin, "INPUT", stdin._Input())
    monkeypatch.setattr(stdin, "CHUNK", 7)  # lines and quotes are cut anywhere
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    receiver = StdinSource.model_validate({"type": "stdin", **fields}).receiver(NO_STREAMS)
    found: list[Any] = []
    receiver.open(None)
    while True:
        try:
            batch = receiver.receive(0.1)
        except Ended:
            return found
        if batch is not None:
            found += batch.events.column("value").to_pylist()
            receiver.acknowledge(batch)


def test_lines_are_read_whole_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'\xef\xbb\xbf{"id": 1}\r\n\n{"id": 22222222222222}\n{"id": 3}'
    found = received(text, monkeypatch, schema="id BIGINT")
    assert found == [b'{"id": 1}', b'{"id": 22222222222222}', b'{"id": 3}']
    assert received(b"", monkeypatch, format="text") == []


def test_csv_becomes_json_with_the_numbers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    ddl = "id BIGINT, amount DECIMAL(20, 2), name STRING, ok BOOLEAN"
    text = b'name,id,amount,ok\n"a ""b""\nc, d",1,12345678901234567.89,true\n,2,x,\n"",3,,false\n1,2\n'
    found = received(text, monkeypatch, format="csv", schema=ddl)
    assert found == [
        b'{"name":"a \\"b\\"\\nc, d","id":1,"amount":12345678901234567.89,"ok":true}',
        b'{"name":null,"id":2,"amount":"x","ok":null}',
        b'{"name":"","id":3,"amount":null,"ok":false}',
        b"1,2",
    ]


def test_a_header_with_a_column_that_is_not_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="no column 'b'"):
        received(b"a,b\n1,2\n", monkeypatch, format="csv", schema="a BIGINT")


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdin, "LONGEST", 20)
    with pytest.raises(Invalid, match="longer than 20 bytes"):
        received(b"x" * 100, monkeypatch, format="text")


def test_events_that_were_not_kept_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdin, "INPUT", stdin._Input())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    source = StdinSource.model_validate({"type": "stdin", "format": "text"})
    first = source.receiver(NO_STREAMS).receive(0.1)
    second = source.receiver(NO_STREAMS).receive(0.1)  # the first one has failed to append them
    assert first is not None
    assert second is not None
    assert first.events.equals(second.events)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "json"}, "needs a 'schema'"),
        ({"format": "csv"}, "needs a 'schema'"),
        ({"format": "text", "schema": "a BIGINT"}, "can't be used with format 'text'"),
    ],
)
def test_fields_that_do_not_go_together(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StdinSource.model_validate({"type": "stdin", **fields})
