"""Tables in memory, reloaded periodically. A database is read once for all tasks of a machine."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.policy import Policy
from penstock.processors.tables.database import DatabaseTable
from penstock.processors.tables.file import FileTable

if TYPE_CHECKING:
    import pyarrow as pa

_PLANNED = b"penstock.planned"
"""Metadata of a shared table: the time of the plan that it was read for. The time of its file can't be used,
since a file system's clock can be some milliseconds behind."""


@dataclass(frozen=True)
class Wanted:
    """The requirements of a step for a table."""

    source: FileTable | DatabaseTable
    schema: pa.Schema
    keys: tuple[str, ...]
    max_rows: int
    refresh_s: float | None
    planned: float
    """When the flow was planned: tables read earlier belong to an earlier run."""
    shared: Path | None
    """The file in which the tasks of this machine share a table that one of them has read."""
    policy: Policy
    """The policy for the files and addresses that may be opened."""


class Snapshot:
    """The rows of a table by their keys, at the time it was read."""

    def __init__(self, rows: pa.RecordBatch, keys: tuple[str, ...]) -> None:
        self.rows = rows
        columns = [rows.column(key).to_pylist() for key in keys]
        found = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        self._places = {key: i for i, key in enumerate(found)}

    def places(self, keys: list[pa.Array]) -> list[int | None]:
        """The row for each key, or None. Of rows with the same key the last is used; null never matches."""
        if len(keys) == 1:
            return [None if key is None else self._places.get(key) for key in keys[0].to_pylist()]
        rows = zip(*(column.to_pylist() for column in keys), strict=True)
        return [None if None in key else self._places.get(key) for key in rows]


class Table:
    """A table, shared by the tasks of one process."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._stamp: object = None
        self._looked = 0.0
        self._snapshot: Snapshot | None = None

    def current(self) -> tuple[Snapshot, list[str]]:
        """The table, and notes for the log: if a reload fails, the previous table stays in use."""
        after_s = self.wanted.refresh_s
        if self._snapshot is not None and (after_s is None or time.monotonic() - self._looked < after_s):
            return self._snapshot, []
        try:
            self._look()
        except (Retryable, Fault) as error:
            if self._snapshot is None:
                raise
            self._looked = time.monotonic()
            return self._snapshot, [f"the table was not reloaded: {error}"]
        assert self._snapshot is not None
        return self._snapshot, []

    def _look(self) -> None:
        source, wanted = self.wanted.source, self.wanted
        if problem := next(wanted.policy.problems(source, resolve=True), None):
            raise Fault(problem.code, problem.message)
        stamp: object = None
        if isinstance(source, FileTable):
            try:
                stamp = source.stamp()
            except OSError as error:
                raise Retryable(f"cannot read the table {source.path}: {error.strerror}") from None
        if self._snapshot is None or stamp is None or stamp != self._stamp:
            read = source.read if wanted.shared is None else self._read_shared
            self._snapshot = Snapshot(read(wanted.schema, wanted.max_rows), wanted.keys)
        self._stamp, self._looked = stamp, time.monotonic()

    def _read_shared(self, schema: pa.Schema, most: int) -> pa.RecordBatch:
        """The table that another task has recently read, or otherwise a new copy."""
        import pyarrow as pa

        file = self.wanted.shared
        assert file is not None
        with _locked(file.with_suffix(".lock")):
            kept = self._kept(file)
            if kept is not None and kept.schema == schema:
                return kept
            rows = self.wanted.source.read(schema, most)
            made = file.with_suffix(".new")
            marked = schema.with_metadata({_PLANNED: repr(self.wanted.planned)})
            with pa.ipc.new_file(str(made), marked) as writer:
                writer.write_batch(rows.cast(marked))
            os.replace(made, file)
            return rows

    def _kept(self, file: Path) -> pa.RecordBatch | None:
        import pyarrow as pa

        try:
            written = file.stat().st_mtime
        except FileNotFoundError:
            return None
        after_s = self.wanted.refresh_s
        if after_s is not None and time.time() - written >= after_s:
            return None
        with pa.OSFile(str(file)) as source:
            table: Any = pa.ipc.open_file(source).read_all()
        planned = float((table.schema.metadata or {}).get(_PLANNED, 0))
        if planned < self.wanted.planned or not table.num_rows:
            return None
        return table.replace_schema_metadata(None).combine_chunks().to_batches()[0]


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
