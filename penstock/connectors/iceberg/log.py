"""The commits of an Iceberg table, from its snapshots, and the rows of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.iceberg.catalog import connected
from penstock.connectors.tables.commits import Commits, DataFile, gap
from penstock.connectors.tables.reader import TableDataSource, TableReader
from penstock.frames.faults import Fault

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, StaticTable, Table
    from pyiceberg.table.snapshots import Snapshot


class IcebergCommits(Commits):
    """The snapshots of an Iceberg table, from the first to the current one."""

    def __init__(self, properties: dict[str, str], name: str, changes: str) -> None:
        self.table: Table = connected(properties).load_table(name)
        self.changes = changes

    def refresh(self) -> None:
        self.table.refresh()

    def newest(self) -> int | None:
        found = self.table.current_snapshot()
        return None if found is None else found.snapshot_id

    def has(self, commit: int) -> bool:
        return any(snapshot.snapshot_id == commit for snapshot in self._line())

    def after(self, commit: int | None) -> Sequence[int]:
        found: list[int] = []
        last = None
        for last in self._line():
            if last.snapshot_id == commit:
                return found[::-1]
            found.append(last.snapshot_id)
        if commit is None and (last is None or last.parent_snapshot_id is None):
            return found[::-1]
        raise gap("snapshots that were not read have expired, or the table was rolled back")

    def before(self, milliseconds: int) -> int | None:
        last = None
        for last in self._line():
            if last.timestamp_ms < milliseconds:
                return last.snapshot_id
        if last is not None and last.parent_snapshot_id is not None:
            raise gap("snapshots since this time have expired")
        return None

    def added(self, commit: int) -> list[DataFile]:
        from pyiceberg.table.snapshots import Operation

        snapshot = self.table.snapshot_by_id(commit)
        if snapshot is None:
            raise gap(f"snapshot {commit} has expired")
        operation = None if snapshot.summary is None else snapshot.summary.operation
        if operation == Operation.REPLACE:  # the same rows in other files
            return []
        if operation not in (None, Operation.APPEND):
            if self.changes == "skip":
                return []
            raise Fault("changed", f"snapshot {commit} of the table deletes or rewrites rows")
        scan = self.table.incremental_append_scan(to_snapshot_id_inclusive=commit)
        return self._files(scan.from_snapshot_id_inclusive(commit).plan_files())

    def files(self, commit: int) -> list[DataFile]:
        snapshot = self.table.snapshot_by_id(commit)
        if snapshot is None:
            raise gap(f"snapshot {commit} has expired")
        age = self._ages(snapshot)
        found = self._files(self.table.scan(snapshot_id=commit).plan_files())
        return sorted(found, key=lambda file: (age[file.path], file.path))

    def _files(self, tasks: Any) -> list[DataFile]:
        place = (self.table.metadata_location, dict(self.table.io.properties))
        found = [DataFile(task.file.file_path, task.file.record_count, (task, *place)) for task in tasks]
        return sorted(found, key=lambda file: file.path)

    def _ages(self, snapshot: Snapshot) -> dict[str, tuple[int, int]]:
        """The age of each file of a snapshot: its sequence number and the time of its commit.

        Tables of version 1 have no sequence numbers, and expired snapshots have no times: these are 0.
        """
        times = {each.snapshot_id: each.timestamp_ms for each in self.table.metadata.snapshots}
        return {
            entry.data_file.file_path: (entry.sequence_number or 0, times.get(entry.snapshot_id or -1, 0))
            for manifest in snapshot.manifests(self.table.io)
            for entry in manifest.fetch_manifest_entry(self.table.io)
        }

    def _line(self) -> Iterator[Snapshot]:
        """The current snapshot and the snapshots before it, as far as they are retained."""
        at = self.table.current_snapshot()
        while at is not None:
            yield at
            parent = at.parent_snapshot_id
            at = None if parent is None else self.table.snapshot_by_id(parent)


class IcebergReader(TableReader):
    """Reads an Iceberg table."""

    def commits(self) -> IcebergCommits:
        return IcebergCommits(self.reading["properties"], self.reading["table"], self.reading["changes"])

    def batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        task: FileScanTask
        task, metadata, properties = file.extra
        table = _table(metadata, tuple(sorted(properties.items())))
        named = {name.lower() for name in self.wanted.names}
        names = [field.name for field in table.schema().fields if field.name.lower() in named]
        scan = ArrowScan(table.metadata, table.io, table.schema().select(*names), AlwaysTrue())
        yield from scan.to_record_batches([task])


@lru_cache(maxsize=8)
def _table(metadata: str, properties: tuple[tuple[str, str], ...]) -> StaticTable:
    """A table as of a metadata file, which the process of a task reads only once."""
    from pyiceberg.table import StaticTable

    given: Mapping[str, str] = dict(properties)
    return StaticTable.from_metadata(metadata, dict(given))


class IcebergDataSource(TableDataSource):
    """An Iceberg table as a Spark data source."""

    made = IcebergReader

    @classmethod
    def name(cls) -> str:
        return "penstock_iceberg"
