"""What the API answers with about pipelines, and about all else that runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from penstock.api.views import DocumentInfo, MetadataInfo, View, common_fields
from penstock.control.registry.records import Record, Referrer
from penstock.errors import Problem

Status = Literal["active", "paused", "completed", "failed", "stopped"]

QUEUE = "Its place among the flows of its worker that wait for their turn to start, 1 is the next; else null."

WAITS = "Why no worker can have it, such as that none has the labels of its placement; null if one can."

RUNNING = "The newest revision that has shown that it runs; an edit that does not start is rolled back to it."
GUARANTEE = "What an acknowledgement of events that are sent to it means; null if none are, and in lists."


class RunError(Problem):
    """Why something does not run."""

    at: datetime | None = None
    problems: list[Problem] = Field(
        default_factory=list, description="All of them, if it was saved without being valid."
    )


class Attempt(RunError):
    """An attempt to run that failed."""

    attempt: int


class SinkOps(View):
    """What one sink has done."""

    model_config = ConfigDict(extra="allow")

    guarantee: str
    events: int
    batches: int
    failures: int
    missed_batches: int
    last_error: str | None
    last_ack_at: datetime | None


class LatencyOps(View):
    """The latency goal of a flow, and whether it is kept."""

    target_ms: int
    p99_ms: float | None = Field(
        description="99 % of the events of the last seconds were acknowledged within this time; null: none."
    )
    met: bool | None = Field(description="Whether that is within the goal.")
    cause: Literal["fixed_cost", "rate", "backlog", "stuck", "uneven"] | None
    reason: str | None = Field(description="Why the goal is not met, in words.")
    missed_since: datetime | None
    linger_ms: int | None = Field(description="How long events wait for others before a micro-batch begins.")
    max_events: int | None = Field(description="Events of a micro-batch at most; null: as many as there are.")


class ReceiverOps(View):
    """The client that fetches events for a flow and appends them to its input stream."""

    state: Literal["receiving", "waiting", "reconnecting", "ended", "failed"] = Field(
        description="`waiting`: the input stream is full."
    )
    events: int = Field(description="Events since the flow was started.")
    failures: int


class Ops(View):
    """What a flow has done so far, over all of its runs."""

    model_config = ConfigDict(extra="allow")

    input_events: int = 0
    batches: int = 0
    dead_letters: int = Field(default=0, description="Events that its batches could not process.")
    input_events_per_second: float = 0.0
    processed_events_per_second: float = 0.0
    last_batch: dict[str, Any] | None = None
    latency: LatencyOps | None = Field(default=None, description="Null without a latency goal.")
    receiver: ReceiverOps | None = Field(
        default=None, description="Null for a source that Spark reads itself, or that events are sent to."
    )
    sinks: dict[str, SinkOps] = Field(default_factory=dict)


class PipeInfo(View):
    """A pipeline: its live spec, and how it is."""

    name: str
    id: str = Field(description="Derived from the name; can't be changed later.")
    status: Status
    phase: str = Field(description="What it does right now: waiting, starting, running, draining, …")
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    spec: Any = Field(description="The spec as it was saved.")
    metadata: MetadataInfo
    revision: int
    running_revision: int | None = Field(description=RUNNING)
    worker: str | None = Field(description="Id of the worker that runs it.")
    error: RunError | None = Field(description="The last error.")
    attempts: list[Attempt] = Field(description="The last attempts that failed.")
    ops: Ops
    guarantee: str | None = Field(default=None, description=GUARANTEE)
    warnings: list[Problem] | None = Field(
        default=None, description="What to know about what was just saved; null if nothing was."
    )
    created_at: datetime
    updated_at: datetime


class RunnableInfo(DocumentInfo):
    """A source, task or sink. One that does not run by itself is there for pipelines to refer to."""

    status: Status | None = Field(description="Null if it does not run by itself.")
    phase: str | None = Field(description="What it does right now; null if it does not run by itself.")
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    running_revision: int | None = Field(description=RUNNING)
    worker: str | None = Field(description="Id of the worker that runs it.")
    error: RunError | None = Field(description="The last error.")
    attempts: list[Attempt] = Field(description="The last attempts that failed.")
    ops: Ops | None = Field(description="What it has done; null if it does not run by itself.")
    guarantee: str | None = Field(default=None, description=GUARANTEE)


class Progress(Ops):
    """What a flow has done, and how it is."""

    name: str
    status: Status
    phase: str
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    error: RunError | None
    attempts: list[Attempt]
    updated_at: datetime


class PipelinePage(View):
    """A part of the list of pipelines."""

    items: list[PipeInfo]
    total: int
    limit: int
    offset: int


class RunnablePage(View):
    """A part of a list of sources, tasks or sinks."""

    items: list[RunnableInfo]
    total: int
    limit: int
    offset: int


def pipe_info(
    record: Record, *, warnings: list[Problem] | None = None, guarantee: str | None = None
) -> PipeInfo:
    """The record of a pipeline as it is shown."""
    about = {"warnings": warnings, "guarantee": guarantee}
    return PipeInfo.model_validate({**common_fields(record), **_flow_fields(record), **about})


def runnable_info(
    record: Record,
    *,
    referrers: list[Referrer] | None = None,
    warnings: list[Problem] | None = None,
    guarantee: str | None = None,
) -> RunnableInfo:
    """The record of a source, task or sink as it is shown."""
    about = {"kind": record.kind, "referrers": referrers, "warnings": warnings, "guarantee": guarantee}
    return RunnableInfo.model_validate({**common_fields(record), **_flow_fields(record), **about})


def _flow_fields(record: Record) -> dict[str, Any]:
    placed = ("status", "phase", "queue_position", "waits_for", "running_revision", "worker")
    names = (*placed, "error", "attempts", "ops")
    flow = record.flow
    if flow is None:
        return {**dict.fromkeys(names), "attempts": []}
    return {name: getattr(flow, name) for name in names}
