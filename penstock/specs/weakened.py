"""Guarantees that a new revision of a document no longer gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import Invalid, Problem
from penstock.plurals import plural
from penstock.specs.documents import Document, PipelineDocument, PipelineSpec, StreamDocument
from penstock.specs.stream import StreamSpec
from penstock.specs.validation import parse


def weakened(
    before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> list[Problem]:
    """A warning for each guarantee that the second revision no longer gives."""
    old, new = _parsed(before, defaults), _parsed(after, defaults)
    if isinstance(old, StreamDocument) and isinstance(new, StreamDocument):
        return list(_stream(old.spec, new.spec))
    if isinstance(old, PipelineDocument) and isinstance(new, PipelineDocument):
        return list(_pipeline(old.spec, new.spec))
    return []


def _stream(old: StreamSpec, new: StreamSpec) -> Iterator[Problem]:
    if old.wal.enabled and not new.wal.enabled:
        yield _warning("the stream becomes transient: its events are lost in a restart", "wal.enabled")
    elif old.wal.sync and new.wal.enabled and not new.wal.sync:
        yield _warning(
            "acknowledged events are no longer synced: a power loss can lose the last second", "wal.sync"
        )
    for field, unit in (("retention_ms", "ms"), ("retention_bytes", "bytes")):
        kept, keeps = getattr(old.wal, field), getattr(new.wal, field)
        if keeps is not None and (kept is None or keeps < kept):
            yield _warning(f"events beyond {keeps:,} {unit} are deleted, read or not", f"wal.{field}")


def _pipeline(old: PipelineSpec, new: PipelineSpec) -> Iterator[Problem]:
    if (old.buffer is None or old.buffer.type != "memory") and new.buffer and new.buffer.type == "memory":
        message = "events that were sent to the pipeline and not read yet are lost in a restart"
        yield _warning(message, "buffer.type")
    needed, needs = _needed(old), _needed(new)
    sinks = {_name(sink): i for i, sink in enumerate(new.sinks)}
    for name in sorted(needed & sinks.keys()):
        if name not in needs and new.commit_policy.mode != "quorum":
            message = f"batches are committed without sink '{name}' while it fails"
            yield _warning(message, f"sinks[{sinks[name]}].required")
    quorum = new.commit_policy.quorum
    if new.commit_policy.mode == "quorum" and quorum is not None and quorum < _count(old):
        message = f"a batch is committed once {plural(quorum, 'sink')} of {len(new.sinks)} acknowledged it"
        yield _warning(message, "commit_policy.quorum")


def _needed(spec: PipelineSpec) -> set[str]:
    """The sinks that must acknowledge a batch."""
    mode = spec.commit_policy.mode
    return {_name(sink) for sink in spec.sinks if mode == "all" or (mode == "required" and sink.required)}


def _count(spec: PipelineSpec) -> int:
    """The number of sinks that must acknowledge a batch."""
    return (spec.commit_policy.quorum or 0) if spec.commit_policy.mode == "quorum" else len(_needed(spec))


def _name(sink: Any) -> str:
    return str(sink.id or getattr(sink, "ref", None) or sink.type)


def _parsed(raw: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> Document | None:
    try:
        return parse(raw, defaults)
    except Invalid:
        return None


def _warning(message: str, field: str) -> Problem:
    return Problem(code="weaker_guarantee", message=message, path=f"spec.{field}")
