"""Documents: the envelope, the five kinds, and the way from a mapping to a model."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.specs.base import Spec
from penstock.specs.catalog import union
from penstock.specs.policies import Batch, CommitPolicy, Restart
from penstock.specs.stream import StreamSpec

API_VERSION = "penstock/v1"
KINDS = ("Stream", "Source", "Task", "Sink", "Pipeline")
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _.-]{0,126}[A-Za-z0-9_-])?")

DesiredStatus = Literal["active", "paused", "stopped"]


def derive_id(name: str) -> str:
    """The stable id of a name: lower case, spaces become underscores."""
    return re.sub(r"\s", "_", name.strip().lower())


class Metadata(Spec):
    """Who a document is."""

    name: str = Field(
        description="Unique within its kind; the id is derived from it and stable for life.",
        json_schema_extra={"pattern": f"^{NAME.pattern}$"},
    )
    description: str = Field(default="", description="Notes for the people who operate it.")
    labels: dict[str, str] = Field(default_factory=dict, description="Free key-value pairs to search by.")

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(
                "a name has 1 to 128 letters, digits, spaces, '_', '-' or '.', "
                "starts with a letter or digit and does not end with a space or '.'"
            )
        return name


class Document(Spec):
    """The envelope every kind shares."""

    apiVersion: Literal["penstock/v1"] = Field(default="penstock/v1", description="Version of the format.")
    kind: str
    metadata: Metadata

    @property
    def id(self) -> str:
        """The id derived from the name."""
        return derive_id(self.metadata.name)


class SourceRef(Spec):
    """A registered source."""

    ref: str = Field(description="Id of a Source.")


class SinkEntry(Spec):
    """How a pipeline treats one of its sinks."""

    id: str | None = Field(default=None, description="Unique in the pipeline; default: the type or the ref.")
    required: bool = Field(
        default=True, description="Whether `commit_policy: {mode: required}` waits for it."
    )


class SinkRef(SinkEntry):
    """A registered sink."""

    ref: str = Field(description="Id of a Sink.")


class ProcessorEntry(Spec):
    """A step's name in its pipeline."""

    id: str | None = Field(default=None, description="Unique in the pipeline; default: made from the type.")


class SourceBinding(Spec):
    """Where a registered source publishes."""

    stream: str | None = Field(default=None, description="Id of the Stream it publishes into.")


class SinkBinding(Spec):
    """What a registered sink subscribes to."""

    stream: str | None = Field(default=None, description="Id of the Stream it subscribes to.")


AnySource: Any = union("source", Spec, SourceRef)
AnySink: Any = union("sink", SinkEntry, SinkRef)
AnyProcessor: Any = union("processor", ProcessorEntry)


class PipelineBuffer(Spec):
    """What holds events that are pushed to a pipeline until it has read them."""

    type: Literal["memory", "sqlite", "wal"] = Field(default="memory", description="Where they are held.")


class PipelineSpec(Spec):
    """Source → processors → sinks under one batching rule and one commit policy."""

    source: AnySource = Field(description="Where events come from: inline, or `{ref: id}`.")
    buffer: PipelineBuffer | None = Field(default=None, description="What holds pushed events.")
    processors: list[AnyProcessor] = Field(default_factory=list, description="Steps, in order.")
    tasks: list[str] | None = Field(
        default=None, description="In place of `processors`: ids of Tasks whose processors run in that order."
    )
    sinks: list[AnySink] = Field(min_length=1, description="Where events go: inline, or `{ref: id}`.")
    batch: Batch = Field(default_factory=Batch, description="When a batch is complete.")
    commit_policy: CommitPolicy = Field(
        default_factory=CommitPolicy, description="Which sinks must acknowledge."
    )
    restart: Restart = Field(default_factory=Restart, description="What happens after a failure.")
    dead_letters: str | None = Field(
        default=None, description="Id of the Stream for what cannot be processed."
    )


class TaskOutput(Spec):
    """One stream a task publishes to."""

    stream: str = Field(description="Id of the Stream.")
    when: str | None = Field(default=None, description="SQL condition that chooses the events; absent: all.")


class TaskSpec(Spec):
    """Reads one stream, runs processors, publishes to one or more streams."""

    input: str | None = Field(default=None, description="Id of the Stream it reads.")
    processors: list[AnyProcessor] = Field(min_length=1, description="Steps, in order.")
    outputs: list[TaskOutput] = Field(default_factory=list, description="Streams it publishes to.")


class StreamDocument(Document):
    """A Stream."""

    kind: Literal["Stream"]
    spec: StreamSpec = Field(default_factory=StreamSpec)


class SourceDocument(Document):
    """A registered source."""

    kind: Literal["Source"]
    spec: union("source", SourceBinding)  # type: ignore[valid-type]


class TaskDocument(Document):
    """A Task."""

    kind: Literal["Task"]
    spec: TaskSpec


class SinkDocument(Document):
    """A registered sink."""

    kind: Literal["Sink"]
    spec: union("sink", SinkBinding)  # type: ignore[valid-type]


class PipelineDocument(Document):
    """A Pipeline."""

    kind: Literal["Pipeline"]
    spec: PipelineSpec
    status: DesiredStatus = Field(default="active", description="What it should do once it is saved.")


class Models:
    """The model of each kind."""

    by_kind: ClassVar[dict[str, type[Document]]] = {
        "Stream": StreamDocument,
        "Source": SourceDocument,
        "Task": TaskDocument,
        "Sink": SinkDocument,
        "Pipeline": PipelineDocument,
    }
