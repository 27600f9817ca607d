"""The delivery guarantee of a stream's acknowledgement, as text."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.plurals import plural
from penstock.specs.stream import DEFAULT_LIMIT, StreamSpec


def guarantee(spec: StreamSpec) -> str:
    """The guarantee that these settings give."""
    return f"{_durability(spec)} {_retention(spec)} {_pressure(spec)}"


def combined(sentences: Mapping[str, str]) -> str:
    """One guarantee for several streams, keyed by id: if their guarantees differ, each stream is named."""
    if len(set(sentences.values())) == 1:
        return next(iter(sentences.values()))
    return " ".join(f"In '{stream}': {sentence}" for stream, sentence in sentences.items())


def _durability(spec: StreamSpec) -> str:
    if not spec.wal.enabled:
        kept = "An acknowledged event is only in memory"
        if spec.buffer.spill:
            kept += " (or spilled to disk, where a restart removes it)"
        return f"{kept}: it survives a killed worker, but not a restart of Penstock."
    if spec.storage == "kafka":
        kept = "An acknowledged event is on all in-sync replicas in Kafka"
        if spec.wal.sync:
            return f"{kept}, and on their disks: it survives a killed process and a power loss."
        return f"{kept}: it survives a killed process, and a lost broker if there is another replica."
    if spec.wal.sync:
        return "An acknowledged event is on disk: it survives a killed process and a power loss."
    return (
        "An acknowledged event is written to disk: it survives a killed process; a power loss may lose about "
        "the last second."
    )


def _retention(spec: StreamSpec) -> str:
    limits = []
    if spec.wal.retention_ms is not None:
        limits.append(f"for {duration(spec.wal.retention_ms)}")
    if not spec.wal.enabled:
        until = ["until every reader has read it", *(f"at most {limit}" for limit in limits)]
        unwanted = "a full stream that has no reader drops its oldest events, counted."
        return f"It is kept {', '.join(until)}; {unwanted}"
    most = spec.wal.retention_bytes or (DEFAULT_LIMIT if spec.storage == "sqlite" else None)
    if most is not None:
        limits.append(f"while the stream has at most {size(most)}")
    if spec.storage == "local":
        limits.append(f"while it has at most {spec.wal.max_segments} segments")
    kept = f"It is kept {' and '.join(limits)}" if limits else "It is kept without limit"
    if spec.wal.on_full == "block":
        return f"{kept}; a full stream accepts no events until its oldest events have been read."
    return f"{kept}; a full stream drops its oldest events, counted."


def _pressure(spec: StreamSpec) -> str:
    most = spec.buffer.max_unread
    full = f" The stream holds at most {plural(most, 'unread event')}." if most is not None else ""
    wait = duration(spec.buffer.timeout_ms)
    return {
        "block": "When the buffer is full, producers wait.",
        "drop": "When the buffer is full, new events are dropped and counted.",
        "timeout": f"When the buffer is full, producers wait {wait}; then the events are dropped and "
        "counted.",
    }[spec.buffer.mode] + full


def duration(ms: int) -> str:
    """A duration in words."""
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if ms >= length and ms % length == 0:
            count = ms // length
            return f"{plural(count, unit)}"
    return f"{ms} ms"


def size(count: int) -> str:
    """A number of bytes in words."""
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= length:
            return f"{count / length:.4g} {unit}"
    return f"{count} bytes"
