"""Reads Delta tables by their log, as the protocol says, without the library that writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq


def commits(root: Path) -> list[list[dict[str, Any]]]:
    """The actions of each commit."""
    logs = sorted((root / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]


def rows(root: Path) -> list[dict[str, Any]]:
    """The rows of a table, file by file in the order of their commits; partition values are text."""
    live: dict[str, dict[str, Any]] = {}
    for actions in commits(root):
        for action in actions:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
    found = []
    for add in live.values():
        assert "deletionVector" not in add
        table = pq.ParquetFile(root / unquote(add["path"])).read()
        found += [{**row, **add["partitionValues"]} for row in table.to_pylist()]
    return found


def transactions(root: Path) -> list[tuple[str, int]]:
    """The `txn` actions of a table."""
    return [(a["txn"]["appId"], a["txn"]["version"]) for c in commits(root) for a in c if "txn" in a]
