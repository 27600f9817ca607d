"""Where the logs of an installation lie."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.settings import Settings
from penstock.specs.stream import StreamSpec
from penstock.streams.config import StreamConfig, write_config

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class StreamPlace:
    """A stream and where its log lies."""

    id: str
    spec: StreamSpec
    directory: Path


@dataclass(frozen=True)
class StreamHome:
    """The directories of streams: `<root>/<id>/<life>`, so that a namesake of a deleted one starts empty."""

    root: Path
    memory: Path
    free_bytes: int = 0

    @classmethod
    def of(cls, settings: Settings) -> StreamHome:
        """The home of streams that the settings name."""
        root = settings.home / "streams"
        # The name tells installations on one machine apart.
        name = f"penstock-{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]}"
        memory = SHARED_MEMORY / name if SHARED_MEMORY.is_dir() else settings.home / "memory"
        return cls(root, memory, settings.streams.free_bytes)

    def directory(self, id: str, uid: str) -> Path:
        """The directory of a stream."""
        return self.root / id / uid[:8]

    def ensure(self, id: str, uid: str, spec: StreamSpec) -> Path:
        """Make the log of a stream, or change its settings. Typed streams get one for what does not fit."""
        directory = self.directory(id, uid)
        dead = None
        if spec.schema_ is not None:
            dead = self.ensure(dead_id(id), uid, StreamSpec())
        config = StreamConfig(id, spec, self.memory / id / uid[:8], self.free_bytes, dead)
        write_config(directory, config)
        return directory

    def remove(self, id: str, uid: str) -> None:
        """Remove the log of a stream that is gone."""
        for name in (id, dead_id(id)):
            for root in (self.root, self.memory):
                shutil.rmtree(root / name / uid[:8], ignore_errors=True)
                parent = root / name
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()

    def forget_transient(self) -> None:
        """Remove what transient streams held before a restart."""
        shutil.rmtree(self.memory, ignore_errors=True)
        for spill in self.root.glob("*/*/spill"):
            shutil.rmtree(spill, ignore_errors=True)


def dead_id(stream: str) -> str:
    """The id of the stream for what does not fit the schema of another."""
    return f"{stream}.dead"
