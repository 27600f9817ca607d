"""Documents: the envelope, the six kinds, and their models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from penstock.specs.base import Component, Spec
from penstock.specs.cases import Case
from penstock.specs.catalog import Role, catalog, union
from penstock.specs.conditions import only_with
from penstock.specs.durations import SpanText
from penstock.specs.names import NAME as NAME
from penstock.specs.names import NAME_PATTERN, name_fault
from penstock.specs.names import derive_id as derive_id
from penstock.specs.policies import Batch, CommitPolicy, Effort, Placement, Restart
from penstock.specs.positions import PositionText
from penstock.specs.secret import SecretSpec
from penstock.specs.stream import StreamSpec

API_VERSION = "penstock/v1"
KINDS = ("Secret", "Stream", "Source", "Task", "Sink", "Pipeline")
RUNNABLE = ("Source", "Task", "Sink", "Pipeline")
"""Kinds whose documents can be flows; `runs` determines whether a document is one."""

NOT_RUN = frozenset({"tests", "placement"})
"""Fields of a spec that do not affect the running flow."""

DesiredStatus = Literal["active", "paused", "stopped"]

TESTS = "Test cases: sample events and expected results. Editing them doesn't affect running flows."
POSITION = "Start position: earliest, latest, offset:N or time:ISO 8601."
STATUS = "Desired status after saving"
PLACEMENT = "Workers that may run this flow."
LATENCY = (
    "Latency goal, instead of the thresholds of `batch`: the longest time from the append of an event to "
    "its acknowledgement by the sinks, such as 200ms. The size and frequency of micro-batches are adjusted "
    "to meet it."
)


class Metadata(Spec):
    """The identity of a document."""

    name: str = Field(
        description="Unique within its kind; the id is derived from it and can't be changed later.",
        json_schema_extra={"pattern": NAME_PATTERN},
    )
    description: str = Field(default="", description="Notes for operators.")
    labels: dict[str, str] = Field(
        default_factory=dict, description="Arbitrary key-value pairs for searching and filtering."
    )

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if (fault := name_fault(name)) is not None:
            raise PydanticCustomError(fault.code, "{message}", {"message": fault.message, "hint": fault.hint})
        return name


class Document(Spec):
    """The envelope that all kinds share."""

    apiVersion: Literal["penstock/v1"] = Field(
        default="penstock/v1", description="Version of the document format."
    )
    kind: str
    metadata: Metadata

    @property
    def id(self) -> str:
        """The id derived from the name."""
        return derive_id(self.metadata.name)


class SourceRef(Spec):
    """A registered source."""

    ref: str = Field(description="Id of a Source.")


class SinkEntry(Effort):
    """The settings of a pipeline for one of its sinks."""

    id: str | None = Field(default=None, description="Unique in the pipeline; default: the type or the ref.")
    required: bool = Field(
        default=True, description="Whether `commit_policy: {mode: required}` waits for this sink."
    )


class SinkRef(SinkEntry):
    """A registered sink."""

    ref: str = Field(description="Id of a Sink.")


class ProcessorEntry(Spec):
    """The name of a step in its pipeline."""

    id: str | None = Field(
        default=None, description="Unique in the pipeline; default: derived from the type."
    )


class SourceBinding(Spec):
    """The stream that a registered source publishes to."""

    stream: str | None = Field(
        default=None, description="Id of the Stream to publish to. If set, the source runs on its own."
    )
    auto_create_stream: bool = Field(
        default=False,
        description="Create the stream with default settings if it doesn't exist; without `stream`, it is "
        "named after the source.",
    )
    batch: Batch = Field(default_factory=Batch, description="When to close a batch.")
    restart: Restart = Field(default_factory=Restart, description="Restart behavior after a failure.")
    placement: Placement = Field(default_factory=Placement, description=PLACEMENT)


class SinkBinding(Effort):
    """The stream that a registered sink subscribes to."""

    stream: str | None = Field(
        default=None, description="Id of the Stream to subscribe to. If set, the sink runs on its own."
    )
    position: PositionText = Field(default="earliest", description=POSITION)
    batch: Batch = Field(default_factory=Batch, description="When to close a batch.")
    latency: SpanText | None = Field(default=None, description=LATENCY)
    restart: Restart = Field(default_factory=Restart, description="Restart behavior after a failure.")
    placement: Placement = Field(default_factory=Placement, description=PLACEMENT)


AnySource: Any = union("source", Spec, SourceRef)
AnySink: Any = union("sink", SinkEntry, SinkRef)
AnyProcessor: Any = union("processor", ProcessorEntry)


class PipelineBuffer(Spec):
    """The buffer for events that are pushed to a pipeline, until the pipeline has read them."""

    type: Literal["wal", "sqlite", "memory"] = Field(
        default="wal",
        description="Storage: `wal` and `sqlite` keep events on disk; `memory` loses them in a restart.",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of unread events. Null: 100,000 in memory, unlimited on disk.",
    )
    limit_bytes: int | None = Field(
        default=None,
        ge=1,
        description="Maximum size in bytes. Null: 64 MiB in memory, 4 GiB with `wal`, 1 GiB with `sqlite`.",
    )
    mode: Literal["block", "drop", "timeout"] = Field(
        default="block",
        description="When the limit is reached: `block` makes senders wait and then rejects with 503, "
        "`drop` drops new events (counted, 429), `timeout` makes senders wait and then drops.",
    )
    timeout_ms: int = Field(
        default=5_000,
        ge=0,
        description="How long a sender waits for free space.",
        json_schema_extra=only_with(mode=["timeout", "block"]),
    )
    spill: bool = Field(
        default=False,
        description="Spill to disk before `mode` applies. Spilled events are lost in a restart.",
        json_schema_extra=only_with(type=["memory"]),
    )


class PipelineSpec(Spec):
    """Source → processors → sinks, with one batching rule and one commit policy."""

    source: AnySource = Field(description="Source of the events: inline, or `{ref: id}`.")
    buffer: PipelineBuffer | None = Field(
        default=None, description="Buffer for pushed events. Absent: they are kept on disk."
    )
    processors: list[AnyProcessor] = Field(default_factory=list, description="Processing steps, in order.")
    tasks: list[str] | None = Field(
        default=None, description="Instead of `processors`: ids of Tasks whose processors run in that order."
    )
    sinks: list[AnySink] = Field(min_length=1, description="Sinks of the events: inline, or `{ref: id}`.")
    batch: Batch = Field(default_factory=Batch, description="When to close a batch.")
    latency: SpanText | None = Field(default=None, description=LATENCY)
    commit_policy: CommitPolicy = Field(
        default_factory=CommitPolicy, description="Sinks that must acknowledge a batch."
    )
    restart: Restart = Field(default_factory=Restart, description="Restart behavior after a failure.")
    placement: Placement = Field(default_factory=Placement, description=PLACEMENT)
    dead_letters: str | None = Field(
        default=None, description="Id of the Stream for events that can't be processed."
    )
    tests: list[Case] = Field(default_factory=list, description=TESTS)


class TaskOutput(Spec):
    """One stream that a task publishes to."""

    stream: str = Field(description="Id of the Stream.")
    when: str | None = Field(
        default=None, description="SQL condition that selects events; absent: all events."
    )


class TaskSpec(Spec):
    """Reads one stream, runs processors, publishes to one or more streams."""

    input: str | None = Field(
        default=None,
        description="Id of the Stream to read. With `input` and `outputs` set, the task runs on its own.",
    )
    position: PositionText = Field(default="earliest", description=POSITION)
    processors: list[AnyProcessor] = Field(min_length=1, description="Processing steps, in order.")
    outputs: list[TaskOutput] = Field(default_factory=list, description="Streams to publish to.")
    batch: Batch = Field(default_factory=Batch, description="When to close a batch.")
    latency: SpanText | None = Field(default=None, description=LATENCY)
    restart: Restart = Field(default_factory=Restart, description="Restart behavior after a failure.")
    placement: Placement = Field(default_factory=Placement, description=PLACEMENT)
    tests: list[Case] = Field(default_factory=list, description=TESTS)


class SecretDocument(Document):
    """A Secret."""

    kind: Literal["Secret"]
    spec: SecretSpec


class StreamDocument(Document):
    """A Stream."""

    kind: Literal["Stream"]
    spec: StreamSpec = Field(default_factory=StreamSpec)


class SourceDocument(Document):
    """A registered source."""

    kind: Literal["Source"]
    spec: union("source", SourceBinding)  # type: ignore[valid-type]
    status: DesiredStatus = Field(default="active", description=f"{STATUS}, if the document runs on its own.")


class TaskDocument(Document):
    """A Task."""

    kind: Literal["Task"]
    spec: TaskSpec
    status: DesiredStatus = Field(default="active", description=f"{STATUS}, if the document runs on its own.")


class SinkDocument(Document):
    """A registered sink."""

    kind: Literal["Sink"]
    spec: union("sink", SinkBinding)  # type: ignore[valid-type]
    status: DesiredStatus = Field(default="active", description=f"{STATUS}, if the document runs on its own.")


class PipelineDocument(Document):
    """A Pipeline."""

    kind: Literal["Pipeline"]
    spec: PipelineSpec
    status: DesiredStatus = Field(default="active", description=f"{STATUS}.")


class Models:
    """The model of each kind."""

    by_kind: ClassVar[dict[str, type[Document]]] = {
        "Secret": SecretDocument,
        "Stream": StreamDocument,
        "Source": SourceDocument,
        "Task": TaskDocument,
        "Sink": SinkDocument,
        "Pipeline": PipelineDocument,
    }


def runs(document: Mapping[str, Any]) -> bool:
    """Whether a document runs on its own, as a flow. Other documents exist only to be referred to.

    Takes raw mappings, so that invalid documents can be checked too.
    """
    kind, spec = document.get("kind"), document.get("spec")
    if kind == "Pipeline":
        return True
    if not isinstance(spec, Mapping):
        return False
    if kind == "Task":
        return _named(spec.get("input")) and isinstance(spec.get("outputs"), list) and bool(spec["outputs"])
    if kind == "Sink":
        return _named(spec.get("stream")) and not has_own_stream("sink", spec)
    if kind == "Source":
        publishes = _named(spec.get("stream")) or spec.get("auto_create_stream") is True
        # A source of an unknown type counts as one that pulls: its validation reports the error.
        pushed = bool(getattr(_component("source", spec), "push", False))
        return publishes and not pushed and not has_own_stream("source", spec)
    return False


def required_labels(document: Mapping[str, Any]) -> dict[str, str] | None:
    """The labels that a worker needs to run a document; None if any worker may. Accepts raw mappings."""
    spec = document.get("spec")
    placement = spec.get("placement") if isinstance(spec, Mapping) else None
    labels = placement.get("labels") if isinstance(placement, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        return None
    return {str(key): str(value) for key, value in labels.items()}


def what_runs(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without its tests and placement: documents that are equal in this have equal flows."""
    spec = document.get("spec")
    if not isinstance(spec, Mapping) or NOT_RUN.isdisjoint(spec):
        return dict(document)
    return {**document, "spec": {name: value for name, value in spec.items() if name not in NOT_RUN}}


def has_own_stream(role: Role, spec: Mapping[str, Any]) -> bool:
    """Whether `stream` is a field of the connector itself, so that it can't name the stream of a binding."""
    component = _component(role, spec)
    return component is not None and "stream" in component.model_fields


def _component(role: Role, spec: Mapping[str, Any]) -> type[Component] | None:
    name = spec.get("type")
    return catalog(role).classes.get(name) if isinstance(name, str) else None


def _named(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
