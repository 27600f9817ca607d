"""Documents as clients send them: whole, or as a patch of an existing document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.registry.records import Record
from penstock.errors import Invalid, Problem
from penstock.specs.documents import API_VERSION

ENVELOPE = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def of_kind(kind: str, raw: Any) -> Any:
    """The document with `kind` set; Invalid if it has another kind."""
    if not isinstance(raw, Mapping):
        return raw
    if raw.get("kind", kind) != kind:
        message = f"expected a {kind}, not a {raw['kind']}"
        raise Invalid(Problem(code="wrong_kind", message=message, path="kind"))
    return versioned({"kind": kind, **raw})


def versioned(raw: Any) -> Any:
    """The document with `apiVersion` set, so that documents with and without it compare as equal."""
    return {"apiVersion": API_VERSION, **raw} if isinstance(raw, Mapping) else raw


def name_of(raw: Any) -> str | None:
    """The name of a document, if it has one."""
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else None


def patched(record: Record, patch: Any) -> Any:
    """A document with a partial document, or a partial spec, merged into it."""
    if not isinstance(patch, Mapping):
        raise Invalid(Problem(code="not_a_patch", message="a patch must be a mapping of the changed fields"))
    return merge_patch(record.document, patch if set(patch) & ENVELOPE else {"spec": patch})


def merge_patch(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386): null removes, mappings merge, anything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
