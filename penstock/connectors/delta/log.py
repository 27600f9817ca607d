"""The commits of a Delta table, from its log, and the rows of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.connectors.delta.table import explained, opened
from penstock.connectors.file.paths import is_local
from penstock.connectors.tables.commits import Commits, DataFile, gap
from penstock.connectors.tables.reader import BATCH_EVENTS, TableDataSource, TableReader
from penstock.errors import Retryable
from penstock.frames.faults import Fault

READ = {
    "appendOnly", "checkConstraints", "deletionVectors", "invariants", "timestampNtz", "typeWidening",
    "v2Checkpoint", "vacuumProtocolCheck",
}  # fmt: skip
"""Table features that this reader supports. Files with deleted rows are rejected."""

EVENT_BYTES = 100
"""The assumed size of a row in bytes if a table has no statistics, to limit micro-batches."""

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


def storage(uri: str, options: Mapping[str, str]) -> fs.FileSystem:
    """The file system of a table, with paths relative to the table."""
    if is_local(uri):
        return fs.SubTreeFileSystem(uri, fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))


class DeltaCommits(Commits):
    """The versions of a Delta table.

    A commit is read from its own file in the log, because the library can only read whole tables.
    """

    def __init__(self, uri: str, options: Mapping[str, str], changes: str) -> None:
        self.uri, self.options, self.changes = uri, options, changes
        found = opened(uri, options)
        if found is None:
            raise Retryable(f"there is no Delta table at '{uri}'")
        self.table, self.storage = found, storage(uri, options)
        missing = set(found.protocol().reader_features or ()) - READ
        if missing or found.protocol().min_reader_version == 2:
            names = ", ".join(sorted(missing)) or "columnMapping"
            raise Fault("unsupported_table", f"the table requires reader features {names}")

    def refresh(self) -> None:
        with explained(self.uri, self.options):
            self.table.update_incremental()

    def newest(self) -> int:
        return int(self.table.version())

    def has(self, commit: int) -> bool:
        return 0 <= commit <= self.newest()

    def after(self, commit: int | None) -> Sequence[int]:
        return range(0 if commit is None else commit + 1, self.newest() + 1)

    def before(self, milliseconds: int) -> int | None:
        for version in range(self.newest(), -1, -1):
            times = [action["commitInfo"]["timestamp"] for action in self._actions(version, "commitInfo")]
            if times and times[0] < milliseconds:
                return version
        return None

    def added(self, commit: int) -> list[DataFile]:
        actions = list(self._actions(commit, "add", "remove"))
        changed = [each for action in actions for each in action.values() if each.get("dataChange", True)]
        if any(action["remove"] in changed for action in actions if "remove" in action):
            if self.changes == "skip":
                return []
            raise Fault("changed", f"version {commit} of the table deletes or rewrites rows")
        return [_added(action["add"]) for action in actions if "add" in action and action["add"] in changed]

    def files(self, commit: int) -> list[DataFile]:
        from deltalake import DeltaTable

        table = DeltaTable(self.uri, version=commit, storage_options=dict(self.options))
        if pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all().num_rows:
            raise Fault("unsupported_table", "files of the table have deleted rows (deletion vectors)")
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        found = [
            _file(
                action["path"],
                action["num_records"],
                action["size_bytes"],
                {
                    name.removeprefix("partition."): value
                    for name, value in action.items()
                    if name.startswith("partition.")
                },
            )
            for action in sorted(actions, key=lambda action: (action["modification_time"], action["path"]))
        ]
        return found

    def _actions(self, version: int, *kinds: str) -> Iterator[dict[str, Any]]:
        try:
            with self.storage.open_input_stream(f"_delta_log/{version:020d}.json") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            raise gap(f"version {version} is no longer in the log of the table") from None
        for line in lines:
            action = json.loads(line)
            if any(kind in action for kind in kinds):
                yield {kind: action[kind] for kind in kinds if kind in action}


def _added(add: Mapping[str, Any]) -> DataFile:
    events = json.loads(add.get("stats") or "{}").get("numRecords")
    return _file(add["path"], events, add["size"], add.get("partitionValues") or {})


def _file(path: str, events: int | None, size: int, values: Mapping[str, Any]) -> DataFile:
    if ABSOLUTE.match(path):
        raise Fault("unsupported_table", "files of the table are outside its directory")
    return DataFile(unquote(path), size // EVENT_BYTES if events is None else int(events), dict(values))


class DeltaReader(TableReader):
    """Reads a Delta table."""

    def commits(self) -> DeltaCommits:
        return DeltaCommits(self.reading["uri"], self.reading["options"], self.reading["changes"])

    @cached_property
    def storage(self) -> fs.FileSystem:
        """The file system of the table."""
        return storage(self.reading["uri"], self.reading["options"])

    def batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        wanted = {field.name.lower(): field for field in self.wanted}
        with self.storage.open_input_file(file.path) as data:
            found = pq.ParquetFile(data)
            names = [name for name in found.schema_arrow.names if name.lower() in wanted]
            for batch in found.iter_batches(BATCH_EVENTS, columns=names):
                for name, value in file.extra.items():
                    if (field := wanted.get(name.lower())) is not None:
                        batch = batch.append_column(field.name, _column(value, field.type, len(batch)))
                yield batch


def _column(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """A column with the value of a partition, which is text in the log; empty text is null."""
    if value is None or value == "":
        return pa.nulls(rows, kind)
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        value = pa.scalar(value.removesuffix("Z")).cast(pa.timestamp("us")).cast(pa.int64()).as_py()
    scalar = pa.scalar(value).cast(kind) if isinstance(value, str) else pa.scalar(value, kind)
    return pa.repeat(scalar, rows)


class DeltaDataSource(TableDataSource):
    """A Delta table as a Spark data source."""

    made = DeltaReader

    @classmethod
    def name(cls) -> str:
        return "penstock_delta"
