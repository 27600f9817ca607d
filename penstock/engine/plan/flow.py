"""Flows: the common runtime form of documents, with a source, ordered processors and one or more sinks.

Every document that runs becomes a flow: a Pipeline, a Task between streams, a Source that publishes into a
stream and a Sink that subscribes to one. Resolving substitutes variables, merges defaults and follows
references. Each part keeps its place in the document, so that later errors can name it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock.connectors.base import Sink, Source
from penstock.connectors.stream.sink import StreamSink
from penstock.connectors.stream.source import StreamSource
from penstock.errors import Invalid, Problem
from penstock.frames.logs import place_of
from penstock.frames.site import Site, reader_of
from penstock.processors.base import BatchProcessor, Processor
from penstock.specs.documents import (
    PipelineDocument,
    SinkRef,
    SourceRef,
    TaskDocument,
    TaskOutput,
    derive_id,
    runs,
    what_runs,
)
from penstock.specs.latency import second_stream, unable_source
from penstock.specs.policies import Batch, CommitPolicy, Effort, PacedBatch, Restart, batching
from penstock.specs.references import publishes_to
from penstock.specs.templated import templates_in
from penstock.specs.validation import parse
from penstock.specs.variables import resolve

Lookup = Callable[[str, str], Mapping[str, Any] | None]
"""Returns the document of a kind and id, as written."""

C = TypeVar("C", Source, Sink, Processor)


@dataclass(frozen=True)
class Place:
    """The place of a part in its document: in the pipeline itself, or in a document it refers to."""

    path: str
    via: str | None = None

    def locate(self, problem: Problem) -> Problem:
        """The problem of a part, with its path in the pipeline's document."""
        if self.via is not None:
            inside = f", at {problem.path}" if problem.path else ""
            return problem.model_copy(
                update={"path": self.path, "message": f"{self.via}{inside}: {problem.message}"}
            )
        joint = "" if not problem.path or problem.path.startswith("[") else "."
        return problem.model_copy(update={"path": f"{self.path}{joint}{problem.path or ''}"})


@dataclass(frozen=True)
class Part(Generic[C]):
    """A source, processor or sink, with its place in the document."""

    id: str
    component: C
    place: Place
    required: bool = True
    when: str | None = None
    """For a sink: the SQL condition that selects its events."""
    effort: Effort = field(default_factory=Effort)
    """For a sink: attempts, backoff and deadline."""


@dataclass(frozen=True)
class Flow:
    """A source, processors and sinks that one Structured Streaming query runs."""

    id: str
    source: Part[Source]
    processors: list[Part[Processor]]
    sinks: list[Part[Sink]]
    site: Site
    batch: Batch
    restart: Restart
    commit_policy: CommitPolicy = field(default_factory=CommitPolicy)

    @property
    def position_key(self) -> str:
        """A key of the source's position: it stays the same while offsets keep their meaning."""
        fields = self.source.component.position_of(self.site)
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def cursors(self) -> set[tuple[str, Path]]:
        """The cursors of the flow: reader name and stream directory. Steps may be readers, too."""
        site = self.site
        reading = [(site.flow, self.source.component.reads(site))]
        reading += [(reader_of(site, part.id), part.component.reads(site)) for part in self.processors]
        return {(reader, place.directory) for reader, place in reading if place is not None}

    @property
    def remembering(self) -> list[Part[Processor]]:
        """The stateful steps, whose state is in the checkpoint."""
        return [part for part in self.processors if part.component.stateful]

    @property
    def in_python(self) -> bool:
        """Whether the flow has a Python step."""
        return any(isinstance(part.component, BatchProcessor) for part in self.processors)

    @property
    def by_offset(self) -> bool:
        """Whether the flow reads a stream, in batches that begin at offsets."""
        return self.source.component.reads(self.site) is not None

    @property
    def latency_ms(self) -> int | None:
        """The latency goal of the flow, if it has one."""
        return self.batch.latency_ms if isinstance(self.batch, PacedBatch) else None

    @property
    def delay_ms(self) -> int:
        """Milliseconds that the watermark lags the latest event, the same for all stateful steps."""
        return max((part.component.delay_ms() for part in self.remembering), default=0)


def resolve_flow(
    raw: Mapping[str, Any],
    lookup: Lookup,
    site: Site,
    defaults: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Flow:
    """The flow of a document, or `Invalid` with every problem.

    A Source that does not publish to a stream has a flow without sinks, which can be analyzed but not run.
    """
    resolver = _Resolver(lookup, site, defaults or {}, os.environ if environment is None else environment)
    return resolver.flow(raw)


def output_ids(streams: Sequence[str]) -> list[str]:
    """The ids of a task's outputs: the ids of their streams, numbered if several write to the same stream."""
    seen: Counter[str] = Counter()
    ids = []
    for stream in map(derive_id, streams):
        seen[stream] += 1
        ids.append(stream if seen[stream] == 1 else f"{stream}:{seen[stream]}")
    return ids


class _Resolver:
    def __init__(
        self, lookup: Lookup, site: Site, defaults: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        self.lookup, self.site, self.defaults, self.environment = lookup, site, defaults, environment
        self.problems: list[Problem] = []

    def flow(self, raw: Mapping[str, Any]) -> Flow:
        document = self.document(raw)
        if not runs(raw) and document.kind != "Source":
            message = f"this {document.kind.lower()} doesn't run on its own"
            hint = {"Task": "set 'input' and 'outputs'", "Sink": "set 'stream'"}.get(document.kind)
            raise Invalid(Problem(code="not_runnable", message=message, path="spec", hint=hint))
        if isinstance(document, PipelineDocument):
            return _with_able_parts(self.pipeline(document))
        if isinstance(document, TaskDocument):
            return _with_able_parts(self.task_flow(document))
        if document.kind == "Source":
            return self.source_flow(document, publishes_to(raw) if runs(raw) else None)
        return self.sink_flow(document)

    def pipeline(self, document: PipelineDocument) -> Flow:
        spec = document.spec
        source = self.source(spec.source)
        processors = (
            self.processors(spec.processors, "spec.processors")
            if spec.tasks is None
            else [p for i, task in enumerate(spec.tasks) for p in self.task(task, f"spec.tasks[{i}]")]
        )
        sinks = [self.sink(sink, f"spec.sinks[{i}]") for i, sink in enumerate(spec.sinks)]
        if spec.dead_letters is not None:
            self.dead_letters(spec.dead_letters, source)
        if self.problems or source is None:
            raise Invalid(*self.problems)
        return Flow(
            document.id,
            source,
            _named(processors),
            [sink for sink in sinks if sink is not None],
            self.site,
            batching(spec.batch, spec.latency),
            spec.restart,
            spec.commit_policy,
        )

    def task_flow(self, document: TaskDocument) -> Flow:
        spec = document.spec
        source = StreamSource(stream=spec.input or "", position=spec.position)
        processors = self.processors(spec.processors, "spec.processors")
        return Flow(
            document.id,
            Part("source", source, Place("spec.input")),
            _named(processors),
            self.outputs(spec.outputs),
            self.site,
            batching(spec.batch, spec.latency),
            spec.restart,
        )

    def source_flow(self, document: Any, stream: str | None) -> Flow:
        place = Place("spec")
        sinks: list[Part[Sink]] = [Part("stream", StreamSink(stream=stream), place)] if stream else []
        source = Part[Source]("source", document.spec, place)
        return Flow(document.id, source, [], sinks, self.site, document.spec.batch, document.spec.restart)

    def sink_flow(self, document: Any) -> Flow:
        spec, place = document.spec, Place("spec")
        source = Part[Source]("source", StreamSource(stream=spec.stream, position=spec.position), place)
        sink = Part[Sink](spec.type, spec, place, effort=_effort(spec))
        batch = batching(spec.batch, spec.latency)
        return Flow(document.id, source, [], [sink], self.site, batch, spec.restart)

    def dead_letters(self, stream: str, source: Part[Source] | None) -> None:
        """Check the stream for dead letters: it must be raw, and not the stream that the flow reads."""
        path = "spec.dead_letters"
        try:
            place = place_of(self.site, stream, field=path)
        except Invalid as error:
            self.problems += error.problems
            return
        if place.spec.schema_ is not None:
            message = f"the stream '{stream}' has a schema, but dead letters are raw events"
            hint = "use a stream without a schema"
            self.problems.append(Problem(code="typed_stream", message=message, path=path, hint=hint))
        reads = source.component if source is not None else None
        if isinstance(reads, StreamSource) and derive_id(reads.stream) == place.id:
            message = f"the pipeline reads '{stream}': it would read its own dead letters"
            self.problems.append(Problem(code="dead_letters_loop", message=message, path=path))

    def outputs(self, outputs: list[TaskOutput]) -> list[Part[Sink]]:
        """A sink for each output, named after its stream."""
        ids = output_ids([output.stream for output in outputs])
        return [
            Part(sink, StreamSink(stream=output.stream), Place(f"spec.outputs[{i}]"), when=output.when)
            for i, (sink, output) in enumerate(zip(ids, outputs, strict=True))
        ]

    def document(self, raw: Mapping[str, Any]) -> Any:
        raw = what_runs(raw)  # sample events may contain anything, even "${"
        policy = self.site.policy
        reads = policy.reads(self.lookup)
        spec, problems = resolve(
            raw.get("spec"), self.environment, policy.allows_variable, "spec", reads, templates_in(raw)
        )
        if problems:
            raise Invalid(*problems)
        document: Any = parse({**raw, "spec": spec}, self.defaults)
        if problems := list(policy.problems(document.spec, "spec")):
            raise Invalid(*problems)
        return document

    def referred(self, kind: str, name: str, place: Place) -> Any:
        """The model of a document that the pipeline refers to; None if it is missing or invalid."""
        raw = self.lookup(kind, derive_id(name))
        if raw is None:
            problem = Problem(code="unknown_reference", message=f"there is no {kind.lower()} '{name}'")
            self.problems.append(problem.model_copy(update={"path": place.path}))
            return None
        try:
            return self.document(raw)
        except Invalid as error:
            self.problems += [place.locate(problem) for problem in error.problems]
            return None

    def source(self, spec: Any) -> Part[Source] | None:
        if not isinstance(spec, SourceRef):
            return Part("source", spec, Place("spec.source"))
        place = Place("spec.source.ref", f"source '{spec.ref}'")
        document = self.referred("Source", spec.ref, place)
        if document is None:
            return None
        raw = self.lookup("Source", derive_id(spec.ref)) or {}
        if document.spec.push and (stream := publishes_to(raw)):
            self.site = replace(self.site, input=derive_id(stream))  # events sent to the pipeline go there
        return Part("source", document.spec, place)

    def sink(self, spec: Any, path: str) -> Part[Sink] | None:
        if not isinstance(spec, SinkRef):
            return Part(spec.id or spec.type, spec, Place(path), spec.required, effort=_effort(spec))
        place = Place(f"{path}.ref", f"sink '{spec.ref}'")
        document = self.referred("Sink", spec.ref, place)
        if document is None:
            return None
        return Part(spec.id or spec.ref, document.spec, place, spec.required, effort=_effort(spec))

    def task(self, name: str, path: str) -> list[Part[Processor]]:
        place = Place(path, f"task '{name}'")
        document = self.referred("Task", name, place)
        if not isinstance(document, TaskDocument):
            return []
        return [
            Part(
                part.id and f"{derive_id(name)}.{part.id}",
                part.component,
                Place(path, f"{place.via}, {part.place.path}"),
            )
            for part in self.processors(document.spec.processors, "spec.processors")
        ]

    def processors(self, specs: list[Any], path: str) -> list[Part[Processor]]:
        return [Part(spec.id or "", spec, Place(f"{path}[{i}]")) for i, spec in enumerate(specs)]


def _with_able_parts(flow: Flow) -> Flow:
    """The flow; raises `Invalid` if it has a latency goal and a part that cannot be paced."""
    if flow.latency_ms is None:
        return flow
    source = flow.source.component
    kind: str = source.type  # type: ignore[attr-defined]
    problems = [] if source.paced else [unable_source(kind)]
    problems += [second_stream(part.id) for part in flow.processors if part.component.reads(flow.site)]
    if problems:
        raise Invalid(*problems)
    return flow


def _effort(spec: Effort) -> Effort:
    return Effort(**{name: getattr(spec, name) for name in Effort.model_fields})


def _named(parts: list[Part[Processor]]) -> list[Part[Processor]]:
    """Name steps without an id after their type, numbered from the second on."""
    taken = Counter(part.id for part in parts if part.id)
    named = []
    for part in parts:
        name, number = part.id, 1
        while not name:
            kind: str = part.component.type  # type: ignore[attr-defined]
            candidate = kind if number == 1 else f"{kind}_{number}"
            name = "" if taken[candidate] else candidate
            number += 1
        taken[name] += 0 if part.id else 1
        named.append(replace(part, id=name))
    return named
