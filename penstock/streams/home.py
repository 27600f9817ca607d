"""The directories of an installation's logs."""

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
    """A stream and the directory of its log."""

    id: str
    spec: StreamSpec
    directory: Path


@dataclass(frozen=True)
class StreamHome:
    """The directories of streams: `<root>/<id>/<life>`, so that no id inherits a deleted stream."""

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

    def directory(self, stream: str, uid: str) -> Path:
        """The directory of a stream."""
        return self.root / stream / uid[:8]

    def ensure(self, stream: str, uid: str, spec: StreamSpec) -> Path:
        """Create the log of a stream, or change its settings. Typed streams also get one for misfits."""
        directory = self.directory(stream, uid)
        dead = None
        if spec.schema_ is not None:
            dead = self.ensure(dead_id(stream), uid, StreamSpec())
        config = StreamConfig(stream, spec, self.memory / stream / uid[:8], self.free_bytes, dead)
        write_config(directory, config)
        return directory

    def remove(self, stream: str, uid: str) -> None:
        """Remove the log of a deleted stream."""
        for name in (stream, dead_id(stream)):
            for root in (self.root, self.memory):
                shutil.rmtree(root / name / uid[:8], ignore_errors=True)
                parent = root / name
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()

    def forget_transient(self) -> None:
        """Remove the events that transient streams held before a restart."""
        shutil.rmtree(self.memory, ignore_errors=True)
        for spill in self.root.glob("*/*/spill"):
            shutil.rmtree(spill, ignore_errors=True)


def dead_id(stream: str) -> str:
    """The id of the stream for events that do not fit the schema of another."""
    return f"{stream}.dead"
