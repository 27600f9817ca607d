"""Reads Iceberg tables by their metadata, as the specification says, without the library that writes them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq


def metadata(database: Path, table: str) -> dict[str, Any]:
    """The metadata of a table, which a catalog in SQLite points at."""
    namespace, _, name = table.rpartition(".")
    query = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?"
    with sqlite3.connect(database) as connection:
        found = connection.execute(query, (namespace, name)).fetchone()
    return {} if found is None else json.loads(_path(found[0]).read_text())


def rows(database: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table, file by file in the order of their commits."""
    state = metadata(database, table)
    current = [s for s in state.get("snapshots", ()) if s["snapshot-id"] == state["current-snapshot-id"]]
    if not current:
        return []
    live = []
    for manifest in _avro(current[0]["manifest-list"]):
        assert manifest.get("content", 0) == 0, "there are delete files"
        for entry in _avro(manifest["manifest_path"]):
            if entry["status"] != 2:
                number = entry.get("sequence_number") or manifest["sequence_number"]
                live.append((number, entry["data_file"]["file_path"]))
    return [row for _, path in sorted(live) for row in pq.ParquetFile(_path(path)).read().to_pylist()]


def _avro(url: str) -> list[Any]:
    with _path(url).open("rb") as file:
        return list(fastavro.reader(file))


def _path(url: str) -> Path:
    return Path(url.removeprefix("file:").replace("//", "/"))
