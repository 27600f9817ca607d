"""Analysis of a document without running it.

First the structure and references, for all documents at once; then, with Spark, schemas and every step
against its input columns. Nothing is started and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from penstock.connectors.base import Source
from penstock.engine.plan.declared_site import declared_site
from penstock.engine.plan.flow import Flow, Lookup, resolve_flow
from penstock.engine.runtime.failures import failure_of
from penstock.errors import Invalid, PenstockError, Problem
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED, Policy
from penstock.specs.catalog import catalog
from penstock.specs.conditions import ineffective
from penstock.specs.documents import (
    Document,
    PipelineDocument,
    PipelineSpec,
    SourceRef,
    StreamDocument,
    derive_id,
    runs,
    what_runs,
)
from penstock.specs.reach import marks_in
from penstock.specs.references import INPUT, made_stream
from penstock.specs.stream import StreamSpec
from penstock.specs.validation import Known, parse
from penstock.specs.variables import refused, secrets_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.engine.plan.shapes import Shapes

SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token|api_?key|access_?key", re.IGNORECASE)


class Column(BaseModel):
    """A column between two steps."""

    name: str
    type: str


class StepSchema(BaseModel):
    """The output columns of a step."""

    id: str
    columns: list[Column]


class Analysis(BaseModel):
    """The result of the analysis of a document."""

    valid: bool = Field(description="Whether the document can be saved as active.")
    errors: list[Problem] = Field(default_factory=list)
    warnings: list[Problem] = Field(default_factory=list)
    steps: list[StepSchema] = Field(
        default_factory=list, description="For flows: the columns after the source and after each step."
    )
    document: dict[str, Any] | None = Field(
        default=None, description="The document with inferred values made explicit."
    )
    id: str | None = Field(default=None, description="Derived from the name; null without a name.")
    guarantee: str | None = Field(
        default=None, description="For a valid Stream: the guarantee of an acknowledgement, as text."
    )


def analyse(
    raw: Any,
    lookup: Lookup,
    known: Known,
    defaults: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
    *,
    policy: Policy = UNRESTRICTED,
    allow_python: bool = False,
    shapes: Shapes | None = None,
) -> Analysis:
    """Analyze a document. Without `spark` only its structure, references and reach are checked.

    Documents may share a session: views that a step registers in it are dropped with the step. With `shapes`
    they also share Spark's results for documents of the same shape.
    """
    document_id = _id(raw)
    try:
        document = parse(raw, defaults, known)
        if isinstance(document, StreamDocument):
            _check_stream(document.spec)
        _check_reach(raw, document, policy)
        analysis = Analysis(
            valid=True, document=dict(raw), warnings=list(_warnings(raw, document)), id=document_id
        )
        if isinstance(document, StreamDocument):
            from penstock.streams.guarantee import guarantee

            analysis.guarantee = guarantee(document.spec)
        if spark is not None and needs_spark(raw):
            site = declared_site(raw, lookup, defaults or {}, policy, allow_python=allow_python)
            _deepen(analysis, raw, lookup, site, defaults or {}, spark, shapes)
        return analysis
    except PenstockError as error:
        kept = dict(raw) if isinstance(raw, Mapping) else None
        return Analysis(valid=False, errors=error.problems, document=kept, id=document_id)
    except Exception as error:  # Spark and plugins may raise anything; other documents are still analyzed
        import structlog

        structlog.get_logger().warning("not judged to the end", error=str(error))
        problem = failure_of(error).problem.model_copy(update={"path": "spec"})
        return Analysis(valid=False, errors=[problem], document=dict(raw), id=document_id)


def _check_reach(raw: Mapping[str, Any], document: Any, policy: Policy) -> None:
    """Reject files, addresses and variables that the document names and must not reach."""
    problems = refused(what_runs(raw).get("spec"), policy.allows_variable, "spec")
    problems += policy.problems(document.spec, "spec", variables=True)
    problems += misplaced_secrets(raw)
    if problems:
        raise Invalid(*problems)


def misplaced_secrets(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """A problem for each secret in a step without a connection: its value would get into events."""
    spec = what_runs(raw).get("spec")
    steps = spec.get("processors") if isinstance(spec, Mapping) else None
    for i, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping) or _connects(str(step.get("type"))):
            continue
        for name, path in secrets_in(step, f"spec.processors[{i}]"):
            yield Problem(
                code="secret_not_allowed",
                message=f"a step of type '{step.get('type')}' can't use the secret '{name}'",
                path=path,
                hint="secrets are for connections: sources, sinks and steps that call other systems",
            )


def _connects(step: str) -> bool:
    """Whether steps of this type connect to other systems."""
    cls = catalog("processor").classes.get(step)
    return cls is not None and not marks_in(cls).isdisjoint(("url", "address", "database"))


def offline(documents: Sequence[Any]) -> tuple[Lookup, Known]:
    """Lookup functions for documents that are not in a registry, such as those of one file.

    Streams that are created with their sources count as existing.
    """
    by_kind: dict[str, dict[str, Mapping[str, Any]]] = {}
    for raw in documents:
        if isinstance(raw, Mapping) and isinstance(raw.get("metadata"), Mapping):
            name = str(raw["metadata"].get("name", ""))
            by_kind.setdefault(str(raw.get("kind")), {})[derive_id(name)] = raw
    for made in [made for raw in documents if isinstance(raw, Mapping) and (made := made_stream(raw))]:
        by_kind.setdefault("Stream", {}).setdefault(derive_id(made["metadata"]["name"]), made)

    def known(kind: str) -> set[str]:
        inputs = {pipeline + INPUT for pipeline in by_kind.get("Pipeline", {})} if kind == "Stream" else set()
        return {*by_kind.get(kind, {}), *inputs}

    return lambda kind, name: by_kind.get(kind, {}).get(name), known


def _id(raw: Any) -> str | None:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return derive_id(name) or None if isinstance(name, str) else None


def needs_spark(raw: Any) -> bool:
    """Whether the analysis of a document needs Spark, in addition to its structure and references."""
    if not isinstance(raw, Mapping) or raw.get("kind") in ("Stream", "Secret"):
        return False
    return raw.get("kind") not in ("Task", "Sink") or runs(raw)


def _deepen(
    analysis: Analysis,
    raw: Any,
    lookup: Lookup,
    site: Site,
    defaults: Mapping[str, Any],
    spark: SparkSession,
    shapes: Shapes | None,
) -> None:
    from penstock.engine.plan.plan import pinned
    from penstock.engine.plan.shapes import Shapes

    flow = resolve_flow(raw, lookup, site, defaults)
    if not flow.sinks:
        try:
            analysis.document = with_schema(raw, pinned(flow, spark).source.component)
        except Invalid as error:
            # It may be declared before its data exists: it is analyzed with a pipeline that uses it.
            if any(problem.code != "schema_unknown" for problem in error.problems):
                raise
            analysis.warnings += error.problems
        return
    planned = (Shapes() if shapes is None else shapes).planned(flow, spark)
    analysis.warnings += batch_warnings(flow)
    analysis.steps = [StepSchema(id=name, columns=_columns(schema)) for name, schema in planned.columns]
    analysis.document = with_schema(raw, planned.source, inline=flow.source.place.via is None)


def with_schema(raw: Mapping[str, Any], source: Source, *, inline: bool = True) -> dict[str, Any]:
    """The document with the inferred schema of its source added, if the source is `inline`."""
    path = {"Pipeline": ("spec", "source"), "Source": ("spec",)}.get(raw["kind"])
    schema = getattr(source, "schema_", None)
    if path is None or schema is None or not inline:
        return dict(raw)
    node: Any = raw
    for key in path:
        node = node[key]
    if node.get("schema") is not None:
        return dict(raw)
    pinned_node = {**node, "schema": schema}
    for depth in range(len(path) - 1, -1, -1):
        parent: Any = raw
        for key in path[:depth]:
            parent = parent[key]
        pinned_node = {**parent, path[depth]: pinned_node}
    return pinned_node


def _columns(schema: StructType) -> list[Column]:
    return [Column(name=field.name, type=field.dataType.simpleString()) for field in schema.fields]


def batch_warnings(flow: Flow) -> Iterator[Problem]:
    """A warning for each field of `batch:` that is set and that the source does not support."""
    source = flow.source.component
    if flow.latency_ms is not None:  # the latency goal sets all of them
        if "availableNow" in source.trigger(flow.batch):
            yield _no_effect("latency", "the pipeline reads the existing events and stops")
        return
    for name in sorted(flow.batch.model_fields_set - source.batch_fields):
        able = ", ".join(sorted(source.batch_fields)) or "none"
        kind = source.type  # type: ignore[attr-defined]
        yield Problem(
            code="no_effect",
            message=f"the source '{kind}' does not batch by {name}",
            path=f"spec.batch.{name}",
            hint=f"supported: {able}",
        )


def _warnings(raw: Mapping[str, Any], document: Document) -> Iterator[Problem]:
    yield from _plain_secrets(raw.get("spec") or {}, "spec")
    if isinstance(document, PipelineDocument) and _needs_no_buffer(document.spec):
        yield _no_effect("buffer", f"events of a source '{document.spec.source.type}' need no buffer")
        raw = {**raw, "spec": {**raw["spec"], "buffer": None}}
    yield from ineffective(raw, document, document)


def _needs_no_buffer(spec: PipelineSpec) -> bool:
    return spec.buffer is not None and not isinstance(spec.source, SourceRef) and not spec.source.held


def _no_effect(field: str, why: str) -> Problem:
    return Problem(code="no_effect", message=f"'{field}' has no effect: {why}", path=f"spec.{field}")


def _check_stream(spec: StreamSpec) -> None:
    """Check the schema of a stream."""
    if spec.schema_ is not None:
        from penstock.streams.schema import arrow_schema

        try:
            arrow_schema(spec.schema_)
        except Invalid as error:
            moved = [p.model_copy(update={"path": "spec.schema"}) for p in error.problems]
            raise Invalid(*moved) from None


def _plain_secrets(node: Any, path: str) -> Iterator[Problem]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if isinstance(value, str) and value and "${" not in value and SECRET.search(str(key)):
                yield Problem(
                    code="plain_secret",
                    message=f"'{key}' is stored and shown in plain text",
                    path=f"{path}.{key}",
                    hint="put it into a Secret, and use ${secret:NAME} here",
                )
            yield from _plain_secrets(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from _plain_secrets(child, f"{path}[{i}]")
