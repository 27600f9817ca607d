"""The floor of a transient stream: an upper bound, on disk, of the offsets it has assigned."""

from __future__ import annotations

from pathlib import Path

from penstock.streams.files import Files

RESERVED = 1_000_000
"""The number of offsets to reserve at once, so that a restart never assigns an offset again."""


class Floor:
    """The offset below which no offset is assigned again."""

    def __init__(self, directory: Path, files: Files) -> None:
        self._path, self._files = directory / "floor", files
        self._reserved = 0

    def read(self) -> int:
        """The bound, or zero if there is none."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return 0

    def reserve(self, end: int) -> None:
        """Ensure that the bound is well above an offset."""
        if end + RESERVED // 2 > self._reserved:
            reserved = end + RESERVED
            self._files.replace(self._path, str(reserved).encode(), durable=True)
            self._reserved = reserved

    def remove(self) -> None:
        """Remove the file, once segments on disk hold the offsets."""
        if self._path.exists():
            self._files.remove(self._path)
            self._files.sync_directory(self._path.parent)

    def forget(self) -> None:
        """Forget the cached bound: another process may have removed the file."""
        self._reserved = 0
