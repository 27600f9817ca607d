"""Export of a stream's events to a file in a common format."""

from __future__ import annotations

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types as is_

from penstock.errors import Invalid, Problem, did_you_mean
from penstock.streams.events import HEADERS, KEY, META, VALUE, conform, payload_schema
from penstock.streams.faults import Progress
from penstock.streams.log import Chunk, Log
from penstock.streams.rendering import plain_values, text_or_base64

Format = Literal["ndjson", "csv", "parquet", "arrow"]
FORMATS: tuple[str, ...] = get_args(Format)

OFFSET, TIME = "_offset", "_time"
GROUP_EVENTS, GROUP_BYTES = 100_000, 32 * 1024 * 1024
"""The size of one write: small writes would result in poor row groups."""

Lost = Callable[[int, int, str], None]
"""Called with a range of offsets that could not be exported, and the reason."""


def export(
    log: Log,
    ddl: str | None,
    target: IO[bytes] | Path,
    file_format: str = "ndjson",
    *,
    start: int | None = None,
    stop: int | None = None,
    details: bool = False,
    progress: Progress = lambda done, total: None,
    lost: Lost = lambda first, next, reason: None,
) -> int:
    """Write the events from `start` to `stop` (or the current end) to `target`; returns their number.

    A typed stream is exported with its columns, a raw stream (`ddl` is None) with `value`, `key` and
    `headers`. `details` adds `_offset` and `_time`, and for a typed stream `_key` and `_headers`. A file
    appears when it is complete.
    """
    if file_format not in FORMATS:
        hint = did_you_mean(file_format, FORMATS)
        message = f"'{file_format}' is not an export format"
        raise Invalid(Problem(code="unknown_format", message=message, path="format", hint=hint))
    bounds = log.bounds()
    begin = bounds.first if start is None else start
    end = bounds.next if stop is None else min(stop, bounds.next)
    shape = _Shape(ddl, details)
    count = 0
    with _opened(target) as file, _WRITERS[file_format](file, shape) as writer:
        for table in _groups(log, begin, end, shape, progress, lost):
            writer.write(table)
            count += table.num_rows
    return count


@contextlib.contextmanager
def _opened(target: IO[bytes] | Path) -> Iterator[IO[bytes]]:
    if not isinstance(target, Path):
        yield target
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _groups(
    log: Log, begin: int, end: int, shape: _Shape, progress: Progress, lost: Lost
) -> Iterator[pa.Table]:
    """The events in tables of limited size."""
    group: list[pa.RecordBatch] = []
    events = size = 0
    for chunk in log.read(begin, end) if begin < end else ():
        if chunk.batch is None:
            lost(chunk.base, chunk.next, chunk.lost or "unknown")
        else:
            group.append(shape.of(chunk, chunk.batch))
            events, size = events + chunk.batch.num_rows, size + chunk.batch.nbytes
        if events >= GROUP_EVENTS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(group, shape.schema)
            group, events, size = [], 0, 0
        progress(chunk.next - begin, end - begin)
    if group:
        yield pa.Table.from_batches(group, shape.schema)


class _Shape:
    """The columns of an export. The columns in `texts` hold bytes, which are written as text if possible."""

    def __init__(self, ddl: str | None, details: bool) -> None:
        payload = payload_schema(ddl)
        self._raw, self._details = ddl is None, details
        self._stored = pa.schema([*payload, *(META if self._raw or details else ())])
        named = {KEY: "key", HEADERS: "headers"} if self._raw else {}
        fields = [field.with_name(named.get(field.name, field.name)) for field in self._stored]
        added = [pa.field(OFFSET, pa.int64()), pa.field(TIME, pa.timestamp("us", "UTC"))] if details else []
        self.schema = pa.schema([*added, *fields])
        self.texts = {VALUE, "key"} if self._raw else {KEY} if details else set()

    def of(self, chunk: Chunk, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a chunk in this shape."""
        columns = list(conform(batch, self._stored).columns)
        if self._details:
            offsets = pa.array(range(chunk.base, chunk.next), pa.int64())
            time = pa.scalar(chunk.time_us, pa.timestamp("us", "UTC"))
            columns = [offsets, pa.repeat(time, batch.num_rows), *columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class _Writer(ABC):
    """Writes tables of one schema."""

    def __init__(self, target: IO[bytes], shape: _Shape) -> None:
        self._target, self._texts = target, shape.texts

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _values(self, table: pa.Table, name: str) -> list[Any]:
        """A column as JSON values."""
        column = table.column(name).combine_chunks()
        if name in self._texts:
            return [text_or_base64(value) for value in column.to_pylist()]
        return plain_values(column)

    @abstractmethod
    def write(self, table: pa.Table) -> None:
        """Write some events."""

    def close(self) -> None:
        """Write the end of the file."""
        return None


class _Ndjson(_Writer):
    """One JSON object per line."""

    def write(self, table: pa.Table) -> None:
        columns = [self._values(table, name) for name in table.column_names]
        for row in zip(*columns, strict=True):
            line = json.dumps(dict(zip(table.column_names, row, strict=True)), ensure_ascii=False)
            self._target.write(line.encode(errors="replace") + b"\n")


class _Csv(_Writer):
    """Comma-separated, with a header. Values of other types are JSON; a null is empty and not quoted."""

    def __init__(self, target: IO[bytes], shape: _Shape) -> None:
        super().__init__(target, shape)
        fields = [
            pa.field(field.name, field.type if _is_plain(field.type) else pa.string())
            for field in shape.schema
        ]
        self._csv = pa.csv.CSVWriter(target, pa.schema(fields))

    def write(self, table: pa.Table) -> None:
        columns = []
        for name in table.column_names:
            column = table.column(name)
            if not _is_plain(column.type):
                column = pa.array([_text(value) for value in self._values(table, name)], pa.string())
            columns.append(column)
        self._csv.write_table(pa.table(columns, names=table.column_names))

    def close(self) -> None:
        self._csv.close()


class _Parquet(_Writer):
    def __init__(self, target: IO[bytes], shape: _Shape) -> None:
        super().__init__(target, shape)
        self._parquet = pa.parquet.ParquetWriter(target, shape.schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        self._parquet.write_table(table)

    def close(self) -> None:
        self._parquet.close()


class _Arrow(_Writer):
    """An Arrow IPC stream, which can be appended to a Penstock stream again."""

    def __init__(self, target: IO[bytes], shape: _Shape) -> None:
        super().__init__(target, shape)
        self._arrow = pa.ipc.new_stream(target, shape.schema)

    def write(self, table: pa.Table) -> None:
        self._arrow.write_table(table)

    def close(self) -> None:
        self._arrow.close()


_WRITERS: dict[str, type[_Writer]] = {
    "ndjson": _Ndjson,
    "csv": _Csv,
    "parquet": _Parquet,
    "arrow": _Arrow,
}


def _is_plain(kind: pa.DataType) -> bool:
    return bool(is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind) or is_.is_string(kind))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
