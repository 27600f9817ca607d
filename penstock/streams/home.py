"""The directories of an installation's logs."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Invalid, Problem, Unavailable
from penstock.settings import Settings
from penstock.specs.stream import StreamSpec
from penstock.streams.config import StreamConfig, change_config, read_config
from penstock.streams.files import Files
from penstock.streams.kafka.cluster import Cluster, topic_of
from penstock.streams.moves import read_note

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class StreamPlace:
    """A stream and the directory of its log."""

    id: str
    spec: StreamSpec
    directory: Path


@dataclass(frozen=True)
class StreamHome:
    """The directories of streams: `<root>/<id>/<life>`, so that no id inherits a deleted stream's log."""

    root: Path
    memory: Path
    free_bytes: int = 0
    kafka: Cluster | None = None
    """The cluster of streams with `storage: kafka`."""
    server: str | None = None
    """The URL of the server that stores the streams; None if they are stored on this machine."""

    @classmethod
    def of(cls, settings: Settings) -> StreamHome:
        """The directories of streams according to the settings."""
        root = settings.home / "streams"
        # The name distinguishes installations on one machine.
        name = f"penstock-{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]}"
        memory = SHARED_MEMORY / name if SHARED_MEMORY.is_dir() else settings.home / "memory"
        return cls(root, memory, settings.streams.free_bytes, Cluster.of(settings.kafka))

    def directory(self, stream: str, uid: str) -> Path:
        """The directory of a stream."""
        return self.root / stream / uid[:8]

    def ensure(self, stream: str, uid: str, spec: StreamSpec, *, storage: bool = False) -> Path:
        """Create the log of a stream, or change its settings. Typed streams also get a log for misfits.

        The storage of an existing log is changed only if `storage` is true.
        """
        if spec.storage == "kafka" and self.kafka is None:
            raise Invalid(no_cluster())
        directory = self.directory(stream, uid)
        dead = None
        if spec.schema_ is not None:
            dead = self.ensure(dead_id(stream), uid, misfits_spec(spec), storage=storage)

        def changed(present: StreamConfig | None) -> StreamConfig:
            kept = spec
            if present is not None and not storage and present.spec.storage != spec.storage:
                kept = spec.model_copy(update={"storage": present.spec.storage})
            known = self.kafka or (present.kafka if present is not None else None)
            kafka = known if kept.storage == "kafka" else None
            memory = self.memory / stream / uid[:8]
            return StreamConfig(stream, kept, memory, self.free_bytes, dead, kafka, self.server)

        if not directory.is_dir():
            Files().make_directory(directory)
        change_config(directory, changed)
        return directory

    def stored(self, directory: Path, spec: StreamSpec) -> StreamSpec:
        """The settings of a stream with the actual storage of its log."""
        kept = read_config(directory).spec.storage
        return spec if kept == spec.storage else spec.model_copy(update={"storage": kept})

    def remove(self, stream: str, uid: str) -> None:
        """Remove the log of a deleted stream."""
        for name in (stream, dead_id(stream)):
            # The settings first: a process that opened the stream now would create its topic again.
            topics = _topics_in(self.directory(name, uid))
            for root in (self.root, self.memory):
                shutil.rmtree(root / name / uid[:8], ignore_errors=True)
                parent = root / name
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()
            for topic in topics:
                _remove_topic(*topic)

    def forget_transient(self) -> None:
        """Remove the events that transient streams held before a restart."""
        shutil.rmtree(self.memory, ignore_errors=True)
        for spill in self.root.glob("*/*/spill"):
            shutil.rmtree(spill, ignore_errors=True)


def no_cluster() -> Problem:
    """The problem of a stream with `storage: kafka` in an installation without a cluster."""
    return Problem(
        code="no_kafka",
        message="no Kafka cluster is configured for this installation",
        path="spec.storage",
        hint="set kafka.brokers in penstock.toml, or PENSTOCK_KAFKA_BROKERS, or use storage: local",
    )


def _topics_in(directory: Path) -> set[tuple[Cluster, str]]:
    """The topics, with their clusters, of a stream that is stored in Kafka or is being moved there."""
    found = set()
    if (note := read_note(directory)) is not None:
        found.add((note.to, note.topic))
    with contextlib.suppress(OSError, ValueError, KeyError):  # there are no settings, or they are unreadable
        config = read_config(directory)
        if config.kafka is not None:
            found.add((config.kafka, topic_of(config.kafka, config.id, directory.name)))
    return found


def _remove_topic(cluster: Cluster, topic: str) -> None:
    from penstock.streams.kafka.clients import clients
    from penstock.streams.kafka.topics import delete_topic

    try:
        delete_topic(clients(cluster), topic)
    except Unavailable as error:  # the document is already deleted
        import structlog

        message = "the topic of a deleted stream could not be removed: delete it"
        structlog.get_logger().error(message, topic=topic, error=str(error))


def misfits_spec(spec: StreamSpec) -> StreamSpec:
    """The settings of the stream that stores the misfits of another stream."""
    return StreamSpec(storage="kafka" if spec.storage == "kafka" else "local")


def dead_id(stream: str) -> str:
    """The id of the stream that stores the misfits of another stream."""
    return f"{stream}.dead"
