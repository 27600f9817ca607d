"""What an acknowledgement of a stream means, in one sentence."""

from __future__ import annotations

from penstock.specs.stream import DEFAULT_LIMIT, StreamSpec


def guarantee(spec: StreamSpec) -> str:
    """The promise that these settings make."""
    return f"{_durability(spec)} {_retention(spec)} {_pressure(spec)}"


def _durability(spec: StreamSpec) -> str:
    if not spec.wal.enabled:
        return (
            "An acknowledged event is in memory: it survives a killed process, but not a restart of Penstock."
        )
    if spec.wal.sync:
        return "An acknowledged event is on disk: it survives a killed process and a power loss."
    return "An acknowledged event is written: it survives a killed process; a power loss may take a second."


def _retention(spec: StreamSpec) -> str:
    if not spec.wal.enabled:
        return "It is kept until every reader has read it."
    limits = []
    if spec.wal.retention_ms is not None:
        limits.append(f"for {duration(spec.wal.retention_ms)}")
    most = spec.wal.retention_bytes or (DEFAULT_LIMIT if spec.storage == "sqlite" else None)
    if most is not None:
        limits.append(f"while the stream has at most {size(most)}")
    if spec.storage == "local":
        limits.append(f"while it has at most {spec.wal.max_segments} segments")
    kept = f"It is kept {' and '.join(limits)}" if limits else "It is kept for ever"
    if spec.wal.on_full == "block":
        return f"{kept}; a full stream makes its producers wait until it was read."
    return f"{kept}; a full stream drops its oldest events, counted."


def _pressure(spec: StreamSpec) -> str:
    wait = duration(spec.buffer.timeout_ms)
    return {
        "block": "Producers that are too fast have to wait.",
        "drop": "What comes too fast is dropped and counted.",
        "timeout": f"What comes too fast waits {wait}, and is then dropped and counted.",
    }[spec.buffer.mode]


def duration(ms: int) -> str:
    """A time as a person says it."""
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if ms >= length and ms % length == 0:
            count = ms // length
            return f"{count} {unit}{'s' * (count != 1)}"
    return f"{ms} ms"


def size(count: int) -> str:
    """A number of bytes as a person says it."""
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= length:
            return f"{count / length:.4g} {unit}"
    return f"{count} bytes"
