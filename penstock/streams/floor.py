"""What a transient stream keeps on disk: no event, but a bound of the offsets it has given out."""

from __future__ import annotations

from pathlib import Path

from penstock.streams.files import Files

RESERVED = 1_000_000
"""Offsets that are reserved at once, so that a restart never gives one out again."""


class Floor:
    """The offset below which none is given out again."""

    def __init__(self, directory: Path, files: Files) -> None:
        self._path, self._files = directory / "floor", files
        self._reserved = 0

    def read(self) -> int:
        """The bound, or zero if there is none."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return 0

    def reserve(self, next: int) -> None:
        """Make sure that the bound lies well above an offset."""
        if next + RESERVED // 2 > self._reserved:
            reserved = next + RESERVED
            self._files.replace(self._path, str(reserved).encode(), durable=True)
            self._reserved = reserved

    def remove(self) -> None:
        """The segments on disk say it now."""
        if self._path.exists():
            self._files.remove(self._path)
            self._files.sync_directory(self._path.parent)

    def forget(self) -> None:
        """Somebody may have removed it."""
        self._reserved = 0
