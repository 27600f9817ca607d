"""The files of a local checkpoint, made safe against power loss.

Spark writes them without a sync, so after a power loss recent files may be empty or truncated, and Spark
refuses to start. Here the files that define a batch are synced before a sink sees the batch, and the state of
the steps before the batch is committed. So an unreadable file belongs to a batch that no sink has seen, or
that is not committed, and may be removed.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from penstock.connectors.file.paths import is_local, local_path
from penstock.errors import Invalid, Problem
from penstock.streams.files import Files

METADATA, OFFSETS, COMMITS, SOURCES, STATE = "metadata", "offsets", "commits", "sources", "state"

STATE_FILES = frozenset({".changelog", ".delta", ".snapshot", ".zip"})
"""The suffixes of Spark's state files, which are never empty."""


class CheckpointFiles:
    """The files of one checkpoint. Checkpoints on non-local file systems are not touched."""

    def __init__(self, checkpoint: str, files: Files | None = None) -> None:
        self._directory = Path(local_path(checkpoint)) if is_local(checkpoint) else None
        self._files = files or Files()
        self._synced: set[Path] = set()

    def repair(self) -> list[str]:
        """Remove unreadable files of batches that no sink has seen or that will be repeated; returns names.

        Raises `Invalid` if another file cannot be read: then the progress of the flow is unknown.
        """
        if self._directory is None or not self._directory.is_dir():
            return []
        removed = [path for path in self._numbered(COMMITS).values() if not _is_sound(path)]
        offsets = self._numbered(OFFSETS)
        newest = max(offsets, default=-1)
        unreadable = {number for number, path in offsets.items() if not _is_sound(path)}
        if newest in unreadable and newest not in self._committed():
            removed.append(offsets.pop(newest))
            unreadable.discard(newest)
        if unreadable:
            raise _damaged(offsets[max(unreadable)], self._directory)
        removed += self._unused_sources(max(offsets.items(), default=(-1, None))[1])
        metadata = self._directory / METADATA
        if metadata.exists() and not _is_sound(metadata, header=False):
            if offsets:
                raise _damaged(metadata, self._directory)
            shutil.rmtree(self._directory)  # no batch has begun, so no progress is lost
            return [METADATA]
        removed += self._unfinished_state()
        for path in removed:
            self._files.remove(path)
            self._files.sync_directory(path.parent)
        return [str(path.relative_to(self._directory)) for path in removed]

    def sync(self, batch: int) -> None:
        """Return when the files that define a batch are on disk."""
        if self._directory is None:
            return
        wanted = [self._directory / METADATA, self._directory / OFFSETS / str(batch)]
        for logged in (self._directory / SOURCES).glob("*"):
            wanted += [path for path in logged.iterdir() if path.name.partition(".")[0].isdigit()]
        new = [path for path in wanted if path not in self._synced]
        for path in new:
            self._files.sync_file(path)
        for directory in {path.parent for path in new}:
            self._files.sync_directory(directory)
        self._synced = {path for path in wanted if path.parent.name != OFFSETS}

    def sync_state(self, batch: int) -> None:
        """Return when the state of the steps after a batch is on disk."""
        if self._directory is None:
            return
        for store in {path.parent for path in (self._directory / STATE).glob(f"*/**/{batch + 1}[._]*")}:
            for path in (*store.glob(f"{batch + 1}.*"), *store.glob(f"{batch + 1}_*")):
                self._files.sync_file(path)
            self._files.sync_directory(store)

    def _unfinished_state(self) -> list[Path]:
        """Empty state files of batches that are not committed."""
        assert self._directory is not None
        last, removed = max(self._committed(), default=-1), []
        for path in (self._directory / STATE).rglob("*"):
            if not path.is_file() or path.stat().st_size or path.suffix not in STATE_FILES:
                continue
            version = re.match(r"\d+", path.name)
            if version is None or int(version[0]) <= last + 1:
                raise _damaged(path, self._directory)
            removed.append(path)
        return removed

    def _numbered(self, name: str) -> dict[int, Path]:
        assert self._directory is not None
        found = (self._directory / name).glob("*")
        return {int(path.name): path for path in found if path.name.isdigit()}

    def _committed(self) -> set[int]:
        return {number for number, path in self._numbered(COMMITS).items() if _is_sound(path)}

    def _unused_sources(self, offsets: Path | None) -> list[Path]:
        """Unreadable source logs that list files of no batch; the source will find these files again."""
        assert self._directory is not None
        ends = offsets.read_text().splitlines()[2:] if offsets else []
        removed = []
        for directory in (self._directory / SOURCES).glob("*"):
            number = int(directory.name)
            end: Any = json.loads(ends[number]) if number < len(ends) and ends[number] != "-" else {}
            used = int(end.get("logOffset", -1)) if isinstance(end, dict) else -1
            for path in directory.iterdir():
                name = path.name.partition(".")[0]  # such as 9.compact
                if not name.isdigit() or _is_sound(path):
                    continue
                if int(name) <= used:
                    raise _damaged(path, self._directory)
                removed.append(path)
        return removed


def _is_sound(path: Path, *, header: bool = True) -> bool:
    """Whether a file has the format that Spark expects: a line with a version, then lines of JSON.

    The first offsets of a Kafka source are preceded by a zero byte.
    """
    try:
        lines = path.read_text().removeprefix("\0").splitlines()
        if header and (len(lines) < 2 or not lines.pop(0).startswith("v")):
            return False
        for line in lines:
            if line != "-":
                json.loads(line)
    except (OSError, ValueError):
        return False
    return bool(lines)


def _damaged(path: Path, directory: Path) -> Invalid:
    message = f"the file {path.relative_to(directory)} of the checkpoint {directory} is empty or cut off"
    hint = "restore it from a backup, or remove the checkpoint: a stream is then read from the cursor of the "
    hint += "flow, and any other source from its beginning"
    return Invalid(Problem(code="checkpoint_damaged", message=message, hint=hint))
