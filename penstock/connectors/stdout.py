"""The `stdout` sink: events as lines on standard output, for pipes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, Sink, SinkWriter
from penstock.connectors.file.form import UNHELD, WRITE, columns_in_form
from penstock.connectors.file.sink import FileSink
from penstock.errors import Backpressure, Problem, Retryable
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

LineFormat = Literal["json", "csv", "text"]

_headed: weakref.WeakSet[Any] = weakref.WeakSet()
"""Outputs that already have a CSV header: a flow that restarts in the same process writes no second one."""

_closed = threading.Event()


def reader_gone() -> bool:
    """Whether the reader of standard output, such as `head -1`, has closed the pipe."""
    return _closed.is_set()


class StdoutSink(Sink):
    """Writes each event as a line to standard output, for pipes such as `penstock run FILE | jq .id`.

    Only `penstock run` has a standard output to pipe, so a server rejects this sink. Progress and logs go to
    standard error. If the reader closes the pipe, as `head -1` does, the run ends with exit code 0; events
    that were not written are delivered by the next run. `csv` has a header line and follows RFC 4180; `text`
    accepts one STRING column. An event that `csv` or `text` can't represent as a line, such as a `text` value
    with a line break, goes to the dead letters.

    Delivery is at-least-once: a batch that is retried after a failure is written again.
    """

    type: Literal["stdout"] = "stdout"
    format: LineFormat = Field(
        default="json", description="A JSON object per line, CSV with a header, or the one text column."
    )

    guarantee: ClassVar = "at-least-once"
    takes: ClassVar = "table"
    piped: ClassVar = True
    tested: ClassVar = "pipes of Linux"
    example: ClassVar = "type: stdout\nformat: csv\n"

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        from pyspark.sql import functions as f

        columns = columns_in_form(df.schema.fields, self.format)
        if self.format == "text":
            return df.select(*columns)
        options = WRITE[self.format]
        if self.format == "json":
            return df.select(f.to_json(f.struct(*columns), options).alias("line"))
        # The writer gets no schema: the name of the column carries the header to it.
        return df.select(f.to_csv(f.struct(*columns), options).alias(_header(df.columns)))

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        yield from FileSink(path=".", format=self.format).check(schema, site)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self.format)


class _Writer(SinkWriter):
    def __init__(self, line_format: LineFormat) -> None:
        self.format = line_format

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        table = events.table()
        lines = table.column(0).to_pylist()
        rejected: list[Rejected] = []
        if self.format != "json":
            lines, rejected = _sifted(lines, table.column_names[0], self.format)
        if lines:
            self._write(lines, table.column_names[0])
        return Delivered(len(lines), rejected)

    def _write(self, lines: list[str], name: str) -> None:
        out = sys.stdout
        header = self.format == "csv" and out not in _headed
        text = "\n".join([name, *lines] if header else lines) + "\n"
        if reader_gone():
            raise _pipe_closed()
        try:
            # On a terminal `sys.stdout` is replaced by the progress line, which prints the text above itself.
            buffer = None if out.isatty() else getattr(out, "buffer", None)
            if buffer is None:
                out.write(text)
            else:
                _write_all(buffer, text.encode())
            out.flush()
        except BrokenPipeError:
            _closed.set()
            _redirect_to_null(out)
            raise _pipe_closed() from None
        except OSError as error:
            raise Retryable(f"can't write to standard output: {(error.strerror or '').lower()}") from None
        if header:
            _headed.add(out)


def _sifted(lines: list[str | None], name: str, line_format: LineFormat) -> tuple[list[str], list[Rejected]]:
    """The lines that the format can represent, and the events that it can't, as rejected events."""
    held: list[str] = []
    rejected = []
    for line in lines:
        text_of_many = line_format == "text" and line is not None and ("\n" in line or "\r" in line)
        if line is None or text_of_many or (line_format == "csv" and not line):
            value = line if line_format == "text" else None
            message = f"{line_format} can't represent the value of '{name}': {UNHELD[line_format]}"
            rejected.append(Rejected(json.dumps({name: value}, ensure_ascii=False), "no_form", message))
        else:
            held.append(line)
    return held, rejected


def _pipe_closed() -> Backpressure:
    """The error for a closed pipe. Not a failure: `penstock run` ends the flow, and the next run delivers."""
    return Backpressure("the reader of standard output has closed the pipe", retry_after=1.0)


def _header(names: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def _write_all(buffer: Any, data: bytes) -> None:
    """Write all bytes: with PYTHONUNBUFFERED a write to a pipe may be partial."""
    rest = memoryview(data)
    while rest:
        rest = rest[buffer.write(rest) :]


def _redirect_to_null(out: Any) -> None:
    """Keep the interpreter from failing at exit, when it flushes bytes that the pipe did not accept."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, out.fileno())
        os.close(null)
