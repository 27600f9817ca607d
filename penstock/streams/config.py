"""The settings file in a stream's directory.

A stream is declared in the registry, and saving it there writes this file. So every process with access to
the directory reads and appends under the same settings, and sees a change at its next append.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.specs.stream import StreamSpec
from penstock.streams.files import Files

FILE = "stream.json"


@dataclass(frozen=True)
class StreamConfig:
    """The settings of a stream's log."""

    id: str
    spec: StreamSpec
    memory: Path | None = None
    """The directory in memory for the segments of a transient stream."""
    free_bytes: int = 0
    """Appends are refused when the volume has less room than this."""
    dead_letters: Path | None = None
    """The directory of the stream for misfits."""

    @property
    def transient(self) -> bool:
        """Whether events are lost in a restart."""
        return not self.spec.wal.enabled

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "id": self.id,
            "memory": str(self.memory) if self.memory else None,
            "free_bytes": self.free_bytes,
            "dead_letters": str(self.dead_letters) if self.dead_letters else None,
            "spec": self.spec.model_dump(by_alias=True),
        }


def write_config(directory: Path, config: StreamConfig, files: Files | None = None) -> bool:
    """Create the directory of a stream, or change its settings; false if nothing changed."""
    files = files or Files()
    files.make_directory(directory)
    try:
        if read_config(directory) == config:
            return False
    except (OSError, ValueError):  # missing or unreadable: written again
        pass
    text = json.dumps(config.to_json(), indent=2).encode()
    files.replace(directory / FILE, text, durable=True)
    return True


def read_config(directory: Path) -> StreamConfig:
    """The settings of a stream; OSError or ValueError if there are none."""
    found = json.loads((directory / FILE).read_bytes())
    return StreamConfig(
        found["id"],
        StreamSpec.model_validate(found["spec"]),
        Path(found["memory"]) if found["memory"] else None,
        found["free_bytes"],
        Path(found["dead_letters"]) if found["dead_letters"] else None,
    )


def config_version(directory: Path) -> tuple[int, int]:
    """A value that changes with the settings; costs one system call."""
    found = os.stat(f"{directory}/{FILE}")  # to join paths takes longer than the call
    return found.st_mtime_ns, found.st_ino
