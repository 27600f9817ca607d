"""The pipelines of a drill: generated, or copies of the user's pipelines with other sources and sinks."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.cli.files import Found
from penstock.cli.output import Usage
from penstock.errors import Invalid, Problem
from penstock.specs.documents import derive_id
from penstock.specs.validation import parse

GENERATED_SCHEMA = "id BIGINT, text STRING"
GENERATED_QUERY = "SELECT id, upper(text) AS text FROM input WHERE id % 7 <> 3"

LEFT_OUT = ("source", "sinks", "buffer", "commit_policy", "placement", "dead_letters", "tests", "latency")
"""Parts of a pipeline that the copy omits."""


@dataclass(frozen=True)
class Subject:
    """One pipeline of a drill."""

    id: str
    schema: str
    """The columns of the pipeline's events, as Spark DDL."""
    body: Mapping[str, Any]
    """The spec of the pipeline without source and sinks."""
    sinks: tuple[str, ...] = ("out",)
    replaced: tuple[str, ...] = ()
    """The parts that were replaced in the copy, one sentence each."""
    recorded: Sequence[str] = ()
    """Events to use, as JSON; if empty, events are generated from the schema."""
    modelled: bool = False
    """Whether the result can be computed from the events without running the pipeline."""

    def document(self, root: Path, *, finite: bool, undisturbed: bool = False) -> dict[str, Any]:
        """The document of the copy, with all files below `root`."""
        name, out = (f"{self.id}.undisturbed", "truth") if undisturbed else (self.id, "out")
        source: dict[str, Any] = {
            "type": "file",
            "path": str(root / "in" / self.id),
            "format": "json",
            "schema": self.schema,
            "finite": finite,
            "poll_ms": 200,
        }
        if not self.modelled:  # Spark reads the files of a batch in any order, which can affect steps
            source["options"] = {"maxFilesPerTrigger": "1"}
        sinks = [
            {"id": sink, "type": "file", "path": str(root / out / self.id / sink), "format": "json"}
            for sink in self.sinks
        ]
        return {
            "kind": "Pipeline",
            "metadata": {"name": name},
            "spec": {**self.body, "source": source, "sinks": sinks},
        }

    def events(self, first: int, number: int) -> list[str]:
        """Events from number `first` on, each as JSON."""
        if self.recorded:
            return [self.recorded[n % len(self.recorded)] for n in range(first, first + number)]
        from penstock.engine.measure.events import generated
        from penstock.streams.schema import arrow_schema

        rows = generated(arrow_schema(self.schema), first, number).to_pylist()
        return [json.dumps(row, default=_json_value) for row in rows]

    def model(self, written: int) -> Counter[str]:
        """The rows that a generated pipeline outputs for its first `written` events."""
        rows = [json.loads(event) for event in self.events(0, written)]
        kept = [row for row in rows if row["id"] % 7 != 3]
        return Counter(canonical({"id": row["id"], "text": row["text"].upper()}) for row in kept)


def canonical(row: Mapping[str, Any]) -> str:
    """A row as text, identical for equal rows."""
    return json.dumps(row, sort_keys=True)


@dataclass(frozen=True)
class Subjects:
    """All pipelines of a drill, and the documents that they refer to."""

    pipelines: list[Subject]
    others: list[dict[str, Any]] = field(default_factory=list)


def generated_subjects(number: int) -> Subjects:
    """Identical pipelines that are generated for the drill."""
    body = {"processors": [{"type": "sql", "query": GENERATED_QUERY}]}
    return Subjects(
        [Subject(f"drill_{i:02d}", GENERATED_SCHEMA, body, modelled=True) for i in range(1, number + 1)]
    )


def copied_subjects(found: Sequence[Found], recorded: Sequence[str]) -> Subjects:
    """Copies of all pipelines among documents; `Invalid` or `Usage` with all problems."""
    documents = {(each.kind, derive_id(each.name)): each.raw for each in found if each.kind and each.name}
    for raw in documents.values():
        parse(raw)
    pipelines, problems = [], []
    for (kind, name), raw in documents.items():
        if kind == "Pipeline":
            try:
                pipelines.append(_copy(name, raw["spec"], documents, recorded))
            except Invalid as error:
                problems += error.problems
    if problems:
        raise Usage(*problems)
    if not pipelines:
        hint = "pass files with at least one pipeline, or no files to drill generated pipelines"
        raise Usage(
            Problem(code="no_pipeline", message="there is no Pipeline among the documents", hint=hint)
        )
    used = {task for each in pipelines for task in each.body.get("tasks") or ()}
    return Subjects(pipelines, list(_tasks(documents, used)))


def _copy(
    name: str, spec: Mapping[str, Any], documents: Mapping[Any, Any], recorded: Sequence[str]
) -> Subject:
    source = spec["source"]
    if "ref" in source:
        source = (documents.get(("Source", derive_id(source["ref"]))) or {}).get("spec") or {}
    schema = _schema(source, documents)
    if schema is None:
        message = f"no events can be generated for pipeline '{name}': its source has no schema"
        hint = "a drill generates events from the schema of a stream or file source; declare one"
        raise Invalid(Problem(code="no_schema", message=message, path="spec.source", hint=hint))
    ids = [str(sink.get("id") or sink.get("ref") or sink.get("type")) for sink in spec["sinks"]]
    kinds = [str(sink.get("type") or f"ref {sink.get('ref')}") for sink in spec["sinks"]]
    events = f"{len(recorded):,} recorded events in turns" if recorded else "events generated from its schema"
    replaced = [f"source {source.get('type')}: files with {events} ({schema})"]
    replaced += [f"sink {sink} ({kind}): JSON files" for sink, kind in zip(ids, kinds, strict=True)]
    replaced += [f"{part}: left out" for part in LEFT_OUT[2:] if spec.get(part)]
    body = {part: value for part, value in spec.items() if part not in LEFT_OUT}
    return Subject(name, schema, body, tuple(ids), tuple(replaced), recorded)


def _schema(source: Mapping[str, Any], documents: Mapping[Any, Any]) -> str | None:
    if source.get("type") == "stream":
        stream = documents.get(("Stream", derive_id(str(source.get("stream"))))) or {}
        found = (stream.get("spec") or {}).get("schema")
    else:
        found = source.get("schema")
    return found if isinstance(found, str) else None


def _tasks(documents: Mapping[Any, Any], used: set[str]) -> Iterator[dict[str, Any]]:
    """The tasks that pipelines refer to, without streams, so that they don't run on their own."""
    for task in sorted({derive_id(each) for each in used}):
        raw = documents.get(("Task", task))
        if raw is None:
            message = f"there is no Task '{task}' among the documents"
            raise Usage(Problem(code="no_task", message=message, path="spec.tasks"))
        yield {**raw, "spec": {"processors": raw["spec"]["processors"]}}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
