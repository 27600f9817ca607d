"""How far a document can be judged without running it.

Structure and references first, for all documents at once; then, with Spark, schemas and every step against
the columns it will see. Nothing is started and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import BaseModel, Field

from penstock.engine.failures import failure_of
from penstock.engine.flow import Flow, Lookup, resolve_flow
from penstock.engine.plan import pinned, plan_flow
from penstock.errors import Invalid, Problem
from penstock.specs.documents import SourceBinding, derive_id
from penstock.specs.validation import Known, parse
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

log = structlog.get_logger()

SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token|api_?key|access_?key", re.IGNORECASE)


class Column(BaseModel):
    """A column between two steps."""

    name: str
    type: str


class StepSchema(BaseModel):
    """What leaves a step."""

    id: str
    columns: list[Column]


class Analysis(BaseModel):
    """All that is known of a document without running it."""

    valid: bool = Field(description="Whether it can be saved as active.")
    errors: list[Problem] = Field(default_factory=list)
    warnings: list[Problem] = Field(default_factory=list)
    steps: list[StepSchema] = Field(
        default_factory=list, description="For a pipeline: the columns after the source and after each step."
    )
    document: dict[str, Any] | None = Field(
        default=None, description="The document with what was inferred made explicit."
    )


def analyse(
    raw: Any,
    lookup: Lookup,
    known: Known,
    defaults: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
) -> Analysis:
    """Judge a document. Without `spark` only its structure and references are judged."""
    try:
        parse(raw, defaults, known)
        analysis = Analysis(valid=True, document=dict(raw), warnings=list(_warnings(raw)))
        if spark is not None:
            _deepen(analysis, raw, lookup, defaults or {}, spark.newSession())
        return analysis
    except Invalid as error:
        document = dict(raw) if isinstance(raw, Mapping) else None
        return Analysis(valid=False, errors=error.problems, document=document)
    except (
        Exception
    ) as error:  # Spark and plugins may raise anything; the other documents are judged all the same
        log.warning("not judged to the end", error=str(error))
        problem = failure_of(error).problem.model_copy(update={"path": "spec"})
        return Analysis(valid=False, errors=[problem], document=dict(raw))


def offline(documents: Sequence[Any]) -> tuple[Lookup, Known]:
    """Lookup among documents that are not in a registry, such as those of one file."""
    by_kind: dict[str, dict[str, Mapping[str, Any]]] = {}
    for raw in documents:
        if isinstance(raw, Mapping) and isinstance(raw.get("metadata"), Mapping):
            name = str(raw["metadata"].get("name", ""))
            by_kind.setdefault(str(raw.get("kind")), {})[derive_id(name)] = raw
    return (
        lambda kind, name: by_kind.get(kind, {}).get(name),
        lambda kind: set(by_kind.get(kind, {})),
    )


def _deepen(
    analysis: Analysis, raw: Any, lookup: Lookup, defaults: Mapping[str, Any], spark: SparkSession
) -> None:
    kind, spec = raw["kind"], raw.get("spec") or {}
    if kind == "Pipeline":
        flow = resolve_flow(raw, lookup, defaults)
        plan = plan_flow(flow, spark)
        analysis.warnings += _batch_warnings(flow)
        names = ["source", *(part.id for part in flow.processors)]
        frames = [plan.input, *plan.steps]
        analysis.steps = [
            StepSchema(id=name, columns=_columns(df.schema)) for name, df in zip(names, frames, strict=True)
        ]
        if flow.source.place.via is None:
            _pin(analysis, raw, ("spec", "source"), plan.flow)
    elif kind == "Source":
        # A source by itself is the shortest flow there is.
        flow = resolve_flow(
            {
                "kind": "Pipeline",
                "metadata": raw["metadata"],
                "spec": {
                    "source": {k: v for k, v in spec.items() if k not in SourceBinding.model_fields},
                    "sinks": [{"type": "drop"}],
                },
            },
            lookup,
        )
        try:
            _pin(analysis, raw, ("spec",), pinned(flow, spark))
        except Invalid as error:
            if any(problem.code != "schema_unknown" for problem in error.problems):
                raise Invalid(*map(_from_pipeline, error.problems)) from None
            analysis.warnings += map(_from_pipeline, error.problems)
    elif kind == "Stream" and spec.get("schema") is not None:
        parse_schema(spark, spec["schema"], field="spec.schema")


def _pin(analysis: Analysis, raw: Mapping[str, Any], path: tuple[str, ...], flow: Flow) -> None:
    """Write the schema that was inferred into the document."""
    schema = getattr(flow.source.component, "schema_", None)
    node: Any = raw
    for key in path:
        node = node[key]
    if schema is None or node.get("schema") is not None:
        return
    pinned_node = {**node, "schema": schema}
    for depth in range(len(path) - 1, -1, -1):
        parent: Any = raw
        for key in path[:depth]:
            parent = parent[key]
        pinned_node = {**parent, path[depth]: pinned_node}
    analysis.document = pinned_node


def _from_pipeline(problem: Problem) -> Problem:
    path = (problem.path or "").replace("spec.source", "spec", 1)
    return problem.model_copy(update={"path": path})


def _columns(schema: StructType) -> list[Column]:
    return [Column(name=field.name, type=field.dataType.simpleString()) for field in schema.fields]


def _batch_warnings(flow: Flow) -> Iterator[Problem]:
    source = flow.source.component
    for name in sorted(flow.batch.model_fields_set - source.batch_fields):
        able = ", ".join(sorted(source.batch_fields)) or "none"
        kind = source.type  # type: ignore[attr-defined]
        yield Problem(
            code="no_effect",
            message=f"the source '{kind}' does not batch by {name}",
            path=f"spec.batch.{name}",
            hint=f"it honours: {able}",
        )


NOT_USED_YET = {
    "Pipeline": ("buffer", "dead_letters"),
    "Source": ("stream",),
    "Task": ("input", "outputs"),
    "Sink": ("stream",),
}
"""Fields that wait for the log of streams: kept, checked and referred to, but nothing reads them."""


def _warnings(raw: Mapping[str, Any]) -> Iterator[Problem]:
    kind, spec = str(raw.get("kind")), raw.get("spec") or {}
    yield from _plain_secrets(spec, "spec")
    for name in NOT_USED_YET.get(kind, ()):
        if spec.get(name):
            message = f"'{name}' is kept with the document but not used by this version"
            yield Problem(code="no_effect", message=message, path=f"spec.{name}")
    if kind == "Stream":
        message = "a stream can be declared and referred to; this version has no log behind it"
        yield Problem(code="no_effect", message=message, path="spec")


def _plain_secrets(node: Any, path: str) -> Iterator[Problem]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if isinstance(value, str) and value and "${" not in value and SECRET.search(str(key)):
                yield Problem(
                    code="plain_secret",
                    message=f"'{key}' is stored and shown as it is written",
                    path=f"{path}.{key}",
                    hint="write ${NAME} and set that variable where the worker runs",
                )
            yield from _plain_secrets(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from _plain_secrets(child, f"{path}[{i}]")
