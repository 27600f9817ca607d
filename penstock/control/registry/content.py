"""The content of documents: identity, equality and differences."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from penstock.control.registry.records import Diff, DiffEntry, JsonObject
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.specs.documents import KINDS, RUNNABLE, derive_id
from penstock.specs.names import name_fault

DESIRED = ("active", "paused", "stopped")

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def as_json(document: Any) -> JsonObject:
    """A copy of a document with JSON values only; Invalid if the document can't be converted."""
    try:
        text = json.dumps(document, allow_nan=False, ensure_ascii=False)
        copy = json.loads(text.encode())  # rejects half of a surrogate pair, which no database stores
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(Problem(code="not_json", message=f"the document is not JSON: {error}")) from None
    if not isinstance(copy, dict):
        raise Invalid(Problem(code="not_a_document", message="a document must be a mapping"))
    return copy


def identity(document: JsonObject) -> tuple[str, str, str]:
    """Kind, id and name of a document; Invalid if the kind or name is missing or invalid."""
    kind, metadata = document.get("kind"), document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    problems = []
    if kind not in KINDS:
        problems.append(_unknown("kind", kind, KINDS))
    if not isinstance(name, str) or name_fault(name) is not None:
        message = "a document needs a valid name"
        problems.append(Problem(code="invalid_name", message=message, path="metadata.name"))
    if problems:
        raise Invalid(*problems)
    return str(kind), derive_id(str(name)), str(name)


def split_status(document: JsonObject) -> tuple[JsonObject, str | None]:
    """The content of a document, and its `status` field, which is state and creates no revision."""
    if document.get("kind") not in RUNNABLE or "status" not in document:
        return document, None
    status = document["status"]
    if status not in DESIRED:
        raise Invalid(_unknown("status", status, DESIRED))
    return {key: value for key, value in document.items() if key != "status"}, str(status)


def storable(text: str) -> str:
    """Text in a form that both databases can store and compare: no NUL, no lone surrogates."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def fold(text: str) -> str:
    """Text in the form that is stored for searching."""
    return storable(text).casefold()


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal, regardless of field order. `1` and `true` are not equal."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def differences(before: Any, after: Any, path: str = "") -> Iterator[DiffEntry]:
    """The fields that differ, with paths such as `spec.sinks[1].path`; lists by position."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(k for k in after if k not in before)]:
            inner = _join(path, key)
            if key not in after:
                yield DiffEntry(inner, "remove", before=before[key])
            elif key not in before:
                yield DiffEntry(inner, "add", after=after[key])
            else:
                yield from differences(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        for i in range(common):
            yield from differences(before[i], after[i], f"{path}[{i}]")
        for i in range(common, len(before)):
            yield DiffEntry(f"{path}[{i}]", "remove", before=before[i])
        for i in range(common, len(after)):
            yield DiffEntry(f"{path}[{i}]", "add", after=after[i])
    elif not same(before, after):
        yield DiffEntry(path, "replace", before=before, after=after)


def diff(before: JsonObject, after: JsonObject, labels: tuple[str, str] = ("before", "after")) -> Diff:
    """The differences between two documents, as fields and as text."""
    text = difflib.unified_diff(_yaml_lines(before), _yaml_lines(after), *labels)
    return Diff(entries=list(differences(before, after)), text="".join(text))


def _unknown(field: str, value: Any, known: Sequence[str]) -> Problem:
    message = f"unknown {field} {value!r}"
    return Problem(code=f"unknown_{field}", message=message, path=field, hint=did_you_mean(value, known))


def _join(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _yaml_lines(document: JsonObject) -> list[str]:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text.splitlines(keepends=True)
