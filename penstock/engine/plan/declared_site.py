"""The site of a flow that is analyzed and not run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.engine.plan.flow import Lookup
from penstock.errors import Invalid, NotFound, Problem
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.specs.catalog import catalog
from penstock.specs.documents import StreamDocument, derive_id
from penstock.specs.references import INPUT
from penstock.specs.stream import StreamSpec
from penstock.specs.validation import parse
from penstock.streams.home import StreamPlace

NOWHERE = Path("/nonexistent")
"""Planning never opens a log, so its directory need not exist."""


def declared_site(
    raw: Mapping[str, Any],
    lookup: Lookup,
    defaults: Mapping[str, Any],
    policy: Policy,
    *,
    allow_python: bool = False,
) -> Site:
    """The site of a document for analysis, with streams as declared in their documents."""
    name = derive_id(str((raw.get("metadata") or {}).get("name", "")))
    flow = f"{str(raw.get('kind')).lower()}:{name}"
    pushed_to = f"{flow}.in"

    def stream(name: str) -> StreamPlace:
        if name == pushed_to:
            return StreamPlace(name, StreamSpec(schema_=held_schema(raw, lookup)), NOWHERE / name)
        return StreamPlace(
            derive_id(name), declared_stream(name, lookup, defaults), NOWHERE / derive_id(name)
        )

    return Site(flow, 0, stream, pushed_to, allow_python=allow_python, policy=policy)


def declared_stream(name: str, lookup: Lookup, defaults: Mapping[str, Any]) -> StreamSpec:
    """The settings of a stream from its document; raises `NotFound` if there is none."""
    found = lookup("Stream", derive_id(name))
    if found is None and (pushed := _input_of(derive_id(name), lookup)) is not None:
        return pushed
    if found is None:
        raise NotFound(Problem(code="unknown_reference", message=f"there is no stream '{name}'"))
    try:
        document = parse(found, defaults)
    except Invalid as error:
        message = f"the stream '{name}' can't be used: {error}"
        raise NotFound(Problem(code="invalid_reference", message=message)) from None
    assert isinstance(document, StreamDocument)
    return document.spec


def _input_of(stream: str, lookup: Lookup) -> StreamSpec | None:
    """The spec of a stream, if it is the input of a pipeline."""
    pipeline = lookup("Pipeline", stream.removesuffix(INPUT)) if stream.endswith(INPUT) else None
    if pipeline is None:
        return None
    kind = catalog("source").classes.get(str(_source_of(pipeline, lookup).get("type")))
    return StreamSpec(schema_=held_schema(pipeline, lookup)) if getattr(kind, "held", False) else None


def held_schema(raw: Mapping[str, Any], lookup: Lookup) -> str | None:
    """The schema of a flow's input stream, according to its source."""
    source = _source_of(raw, lookup)
    kind: Any = catalog("source").classes.get(str(source.get("type")))
    return kind.input_schema(source) if kind is not None else None


def _source_of(pipeline: Mapping[str, Any], lookup: Lookup) -> Mapping[str, Any]:
    spec = pipeline.get("spec") or {}
    source = spec if pipeline.get("kind") == "Source" else spec.get("source") or {}
    if isinstance(ref := source.get("ref"), str):
        source = (lookup("Source", derive_id(ref)) or {}).get("spec") or {}
    return source if isinstance(source, Mapping) else {}
