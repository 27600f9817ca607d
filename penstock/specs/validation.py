"""Validation of a mapping as a document, with all problems at once.

Three passes, none of which stops the others: the model (fields and types), the rules between fields,
and the references to other documents. Checks that require Spark come later, in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from penstock.errors import Invalid, Problem, did_you_mean
from penstock.plurals import plural
from penstock.specs.documents import KINDS, RUNNABLE, Document, Models, has_own_stream
from penstock.specs.latency import latency_problems, without_rivals
from penstock.specs.names import name_fault
from penstock.specs.problems import problems_of
from penstock.specs.references import references_of

Known = Callable[[str], set[str]]
"""The existing ids of a kind."""


def parse(raw: Any, defaults: Mapping[str, Any] | None = None, known: Known | None = None) -> Document:
    """The document in `raw`; raises `Invalid` with all of its problems.

    `defaults` contains, per kind in lower case, a tree of defaults for the document's spec. With `known`,
    references to documents that do not exist are problems too.
    """
    problems: list[Problem] = []
    document: Document | None = None
    model = Models.by_kind.get(kind) if isinstance(kind := _get(raw, "kind"), str) else None
    if model is None:
        raise Invalid(*_not_a_document(raw))
    filled = with_defaults(raw, defaults or {})
    try:
        document = model.model_validate(filled)
    except ValidationError as error:
        problems += problems_of(error, model)
    problems += _rules(filled)
    if known is not None:
        problems += unknown_references(raw, known)
    if problems or document is None:
        raise Invalid(*problems)
    return document


def with_defaults(raw: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the configured defaults of its kind, which its own fields override."""
    kind_defaults = defaults.get(str(raw.get("kind")).lower())
    if not kind_defaults or not isinstance(raw.get("spec"), Mapping):
        return dict(raw)
    return {**raw, "spec": _merge(without_rivals(kind_defaults, raw["spec"]), raw["spec"])}


def unknown_references(raw: Mapping[str, Any], known: Known) -> list[Problem]:
    """A problem for each reference to a document that does not exist."""
    return [
        Problem(
            code="unknown_reference",
            message=f"there is no {reference.kind.lower()} '{reference.id}'",
            path=reference.path,
            hint=did_you_mean(reference.id, ids) if (ids := known(reference.kind)) else None,
        )
        for reference in references_of(dict(raw))
        if not reference.made and reference.id not in known(reference.kind)
    ]


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**under, **over}
    for key in under.keys() & over.keys():
        if isinstance(under[key], Mapping) and isinstance(over[key], Mapping):
            merged[key] = _merge(under[key], over[key])
    return merged


def _not_a_document(raw: Any) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [
            Problem(
                code="not_a_document",
                message=f"a document must be a mapping, not {type(raw).__name__}",
                hint="start with 'kind:', 'metadata:' and 'spec:'",
            )
        ]
    if "kind" not in raw:
        return [
            Problem(
                code="missing_field",
                message="this field is required",
                path="kind",
                hint=f"one of: {', '.join(KINDS)}",
            )
        ]
    hint = did_you_mean(str(raw["kind"]).capitalize(), KINDS)
    return [Problem(code="unknown_kind", message=f"there is no kind {raw['kind']!r}", path="kind", hint=hint)]


def _rules(raw: Mapping[str, Any]) -> Iterator[Problem]:
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        return
    if raw.get("kind") in ("Pipeline", "Task"):
        yield from _unique(spec.get("processors"), "processor", "spec.processors")
        yield from _unique(spec.get("tests"), "test", "spec.tests", field="name")
    if raw.get("kind") == "Pipeline":
        yield from _unique(spec.get("sinks"), "sink", "spec.sinks", lambda s: s.get("ref") or s.get("type"))
        yield from _either(spec)
        yield from _commit_policy(spec)
    if raw.get("kind") in RUNNABLE:
        yield from _restart(spec.get("restart"))
        yield from _inflight(spec.get("batch"))
        yield from latency_problems(raw)
    if raw.get("kind") == "Source":
        yield from _auto_created(spec)
    if raw.get("kind") == "Stream":
        yield from _storage(spec)


def _unique(
    entries: Any,
    what: str,
    path: str,
    default: Callable[[Mapping[str, Any]], Any] = lambda _: None,
    field: str = "id",
) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = (entry.get(field) or default(entry)) if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Problem(
                code="duplicate_id",
                message=f"two {what}s have the name '{name}'",
                path=f"{path}[{i}].{field}",
                hint=f"give each {what} its own '{field}'",
            )
        seen.add(name)


def _either(spec: Mapping[str, Any]) -> Iterator[Problem]:
    if spec.get("tasks") is not None and spec.get("processors"):
        yield Problem(
            code="exclusive_fields",
            message="'tasks' and 'processors' can't be combined",
            path="spec.tasks",
            hint="keep one of the two",
        )


def _commit_policy(spec: Mapping[str, Any]) -> Iterator[Problem]:
    policy, sinks = spec.get("commit_policy", {}), spec.get("sinks")
    if not isinstance(policy, Mapping) or not isinstance(sinks, list) or not sinks:
        return
    mode, quorum = policy.get("mode", "required"), policy.get("quorum")
    path = "spec.commit_policy.quorum"
    if mode == "quorum" and quorum is None:
        yield Problem(
            code="missing_field",
            message="mode 'quorum' needs 'quorum', the number of sinks",
            path=path,
            hint=f"1 to {len(sinks)}",
        )
    if mode == "quorum" and isinstance(quorum, int) and not 1 <= quorum <= len(sinks):
        yield Problem(
            code="quorum_out_of_range",
            message=f"a quorum of {quorum} can't be met by {plural(len(sinks), 'sink')}",
            path=path,
            hint=f"1 to {len(sinks)}",
        )
    if mode != "quorum" and quorum is not None:
        yield Problem(
            code="exclusive_fields",
            message=f"'quorum' can't be used with mode '{mode}'",
            path=path,
            hint="set mode: quorum, or remove 'quorum'",
        )
    if mode == "required" and all(isinstance(s, Mapping) and s.get("required") is False for s in sinks):
        yield Problem(
            code="no_required_sink",
            message="mode 'required' needs at least one required sink",
            path="spec.sinks",
            hint="mark one sink required, or choose another mode",
        )


def _restart(restart: Any) -> Iterator[Problem]:
    if not isinstance(restart, Mapping):
        return
    first, longest = restart.get("backoff_ms", 1_000), restart.get("max_backoff_ms", 60_000)
    if isinstance(first, int) and isinstance(longest, int) and first > longest:
        yield Problem(
            code="invalid_value",
            message=f"the first wait ({first} ms) exceeds the longest wait ({longest} ms)",
            path="spec.restart.max_backoff_ms",
            hint=f"at least {first}",
        )


def _inflight(batch: Any) -> Iterator[Problem]:
    if isinstance(batch, Mapping) and isinstance(n := batch.get("max_inflight"), int) and n < 1:
        yield Problem(
            code="invalid_value",
            message="at least one batch must be in flight",
            path="spec.batch.max_inflight",
            hint="a number from 1, or auto",
        )


def _auto_created(spec: Mapping[str, Any]) -> Iterator[Problem]:
    if spec.get("auto_create_stream") is not True:
        return
    name = spec.get("stream")
    if has_own_stream("source", spec):
        yield Problem(
            code="exclusive_fields",
            message=f"a source of type '{spec['type']}' reads a stream and can't publish to one",
            path="spec.auto_create_stream",
            hint="remove 'auto_create_stream'",
        )
    elif isinstance(name, str) and name_fault(name) is not None:
        yield Problem(
            code="invalid_value",
            message=f"'{name}' is not a valid stream name",
            path="spec.stream",
            hint="1 to 128 letters, digits, spaces, '_', '-' or '.'",
        )


def _storage(spec: Mapping[str, Any]) -> Iterator[Problem]:
    wal = spec.get("wal")
    if isinstance(wal, Mapping) and wal.get("enabled") is False and spec.get("storage", "local") != "local":
        yield Problem(
            code="exclusive_fields",
            message=f"a transient stream can't use storage '{spec['storage']}'",
            path="spec.storage",
            hint="use storage: local, or enable the wal",
        )


def _get(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, Mapping) else None
