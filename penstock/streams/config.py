"""The settings file in a stream's directory.

A stream is declared in the registry, and saving it there writes this file. So every process with access to
the directory reads and appends under the same settings, and sees a change at its next append.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.specs.stream import StreamSpec
from penstock.streams.files import Files
from penstock.streams.kafka.cluster import Cluster

FILE = "stream.json"


@dataclass(frozen=True)
class StreamConfig:
    """The settings of a stream's log."""

    id: str
    spec: StreamSpec
    memory: Path | None = None
    """The directory in memory for the segments of a transient stream."""
    free_bytes: int = 0
    """Appends are rejected when the volume has less free space than this."""
    dead_letters: Path | None = None
    """The directory of the stream that stores misfits."""
    kafka: Cluster | None = None
    """With `storage: kafka`: the cluster that stores the events."""
    server: str | None = None
    """The URL of the server whose disk holds the stream; None if it is on this machine, or in Kafka."""

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
            "kafka": self.kafka.to_json() if self.kafka else None,
            "server": self.server,
            "spec": self.spec.model_dump(by_alias=True),
        }


def write_config(directory: Path, config: StreamConfig, files: Files | None = None) -> bool:
    """Create the directory of a stream, or change its settings; false if nothing changed."""
    files = files or Files()
    files.make_directory(directory)
    return change_config(directory, lambda _: config, files)


def change_config(
    directory: Path, change: Callable[[StreamConfig | None], StreamConfig], files: Files | None = None
) -> bool:
    """Change the settings of a stream, one process at a time; false if nothing changed.

    `change` gets the current settings, or None if there are no readable ones.
    """
    files = files or Files()
    present = _present(directory)
    if present is not None and change(present) == present:
        return False  # the usual case, without a lock
    with _locked(directory):
        present = _present(directory)
        config = change(present)
        if config == present:
            return False
        files.replace(directory / FILE, json.dumps(config.to_json(), indent=2).encode(), durable=True)
        return True


def _present(directory: Path) -> StreamConfig | None:
    try:
        return read_config(directory)
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Prevent other processes from changing the settings: concurrent changes would overwrite each other."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def read_config(directory: Path) -> StreamConfig:
    """The settings of a stream; raises OSError or ValueError if there are none."""
    found = json.loads((directory / FILE).read_bytes())
    return StreamConfig(
        found["id"],
        StreamSpec.model_validate(found["spec"]),
        Path(found["memory"]) if found["memory"] else None,
        found["free_bytes"],
        Path(found["dead_letters"]) if found["dead_letters"] else None,
        Cluster(**kafka) if (kafka := found.get("kafka")) else None,
        found.get("server"),
    )


def config_version(directory: Path) -> tuple[int, int]:
    """A value that changes with the settings; costs one system call."""
    found = os.stat(f"{directory}/{FILE}")  # joining paths takes longer than the call
    return found.st_mtime_ns, found.st_ino
