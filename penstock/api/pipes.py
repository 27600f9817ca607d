"""The views of pipelines and other runnable documents in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from penstock.api.views import DocumentInfo, MetadataInfo, View, common_fields
from penstock.control.registry.records import Record, Referrer
from penstock.engine.delivery.sink_states import State
from penstock.errors import Problem

Status = Literal["active", "paused", "completed", "failed", "stopped"]

QUEUE = "Position in the start queue of its worker, 1 is next; otherwise null."

WAITS = "Why no worker can run the flow, such as missing placement labels; null if one can."

RUNNING = "The newest revision that is known to run; an edit that fails to start is rolled back to it."
GUARANTEE = "Guarantee for events sent to the flow, as text; null in lists and if no events are sent to it."


PHASE = """\
`waiting`, `starting`, `running`, `draining`, `backing_off` after a failed attempt, or `stalled`: failed \
attempts without a good batch since, or a backlog that grows while no batch finishes (`monitor.stalled_ms`); \
`idle` if the flow doesn't run."""
FAILED_ATTEMPTS = "Failed attempts since the last good batch."
GOOD_AT = "When the last good batch finished; null if there was none."


class RunError(Problem):
    """The error of a flow."""

    at: datetime | None = None
    recovered: bool = Field(
        default=False, description="Whether the flow has processed a batch since, so that this error is old."
    )
    problems: list[Problem] = Field(
        default_factory=list, description="All problems, if the document was saved without being valid."
    )


class Attempt(RunError):
    """A failed attempt to run."""

    attempt: int


class SinkOps(View):
    """The counters and state of one sink."""

    model_config = ConfigDict(extra="allow")

    guarantee: str
    state: State = Field(default="in_sync", description="The last state that its worker has reported.")
    events: int
    batches: int
    failures: int
    missed_batches: int
    last_error: str | None
    last_ack_at: datetime | None


class LatencyOps(View):
    """The latency goal of a flow, and whether it is met."""

    target_ms: int
    p99_ms: float | None = Field(
        description="99% of recent events were acknowledged within this time; null: no events."
    )
    met: bool | None = Field(description="Whether the goal is met.")
    cause: Literal["fixed_cost", "rate", "backlog", "stuck", "uneven"] | None
    reason: str | None = Field(description="Why the goal is not met, as text.")
    missed_since: datetime | None
    linger_ms: int | None = Field(
        description="How long events wait for more events before a micro-batch starts."
    )
    max_events: int | None = Field(description="Maximum number of events in a micro-batch; null: no limit.")


class ReceiverOps(View):
    """The client that fetches events for a flow and appends them to its input stream."""

    state: Literal["receiving", "waiting", "reconnecting", "ended", "failed"] = Field(
        description="`waiting`: the input stream is full."
    )
    events: int = Field(description="Events since the flow was started.")
    failures: int


class Ops(View):
    """The counters of a flow, over all of its runs."""

    model_config = ConfigDict(extra="allow")

    input_events: int = 0
    batches: int = 0
    good_at: datetime | None = Field(default=None, description=GOOD_AT)
    dead_letters: int = Field(default=0, description="Events that could not be processed.")
    events_per_second: float = Field(
        default=0.0, description="Events read per second, over the last ten seconds."
    )
    last_batch: dict[str, Any] | None = None
    latency: LatencyOps | None = Field(default=None, description="Null without a latency goal.")
    receiver: ReceiverOps | None = Field(
        default=None, description="Null for sources read by Spark directly and for http sources."
    )
    sinks: dict[str, SinkOps] = Field(default_factory=dict)


class PipeInfo(View):
    """A pipeline: its current spec, and its state."""

    name: str
    id: str = Field(description="Derived from the name; can't be changed later.")
    status: Status
    phase: str = Field(description=PHASE)
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    spec: Any = Field(description="The saved spec.")
    metadata: MetadataInfo
    revision: int
    running_revision: int | None = Field(description=RUNNING)
    worker: str | None = Field(description="Id of the worker that runs the flow.")
    error: RunError | None = Field(description="The last error.")
    attempts: list[Attempt] = Field(description="The most recent failed attempts.")
    failed_attempts: int = Field(description=FAILED_ATTEMPTS)
    ops: Ops
    guarantee: str | None = Field(default=None, description=GUARANTEE)
    warnings: list[Problem] | None = Field(
        default=None, description="Warnings about the revision just saved; null if nothing was saved."
    )
    created_at: datetime
    updated_at: datetime


class RunnableInfo(DocumentInfo):
    """A source, task or sink. If it doesn't run on its own, pipelines refer to it."""

    status: Status | None = Field(description="Null if the document doesn't run on its own.")
    phase: str | None = Field(description=f"{PHASE} Null if the document doesn't run on its own.")
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    running_revision: int | None = Field(description=RUNNING)
    worker: str | None = Field(description="Id of the worker that runs the flow.")
    error: RunError | None = Field(description="The last error.")
    attempts: list[Attempt] = Field(description="The most recent failed attempts.")
    failed_attempts: int | None = Field(description=FAILED_ATTEMPTS)
    ops: Ops | None = Field(description="Counters of the flow; null if the document doesn't run on its own.")
    guarantee: str | None = Field(default=None, description=GUARANTEE)


class Progress(Ops):
    """The counters and the state of a flow."""

    name: str
    status: Status
    phase: str
    queue_position: int | None = Field(description=QUEUE)
    waits_for: Problem | None = Field(description=WAITS)
    error: RunError | None
    attempts: list[Attempt]
    failed_attempts: int = Field(description=FAILED_ATTEMPTS)
    updated_at: datetime


class PipelinePage(View):
    """A page of a list of pipelines."""

    items: list[PipeInfo]
    total: int
    limit: int
    offset: int


class RunnablePage(View):
    """A page of a list of sources, tasks or sinks."""

    items: list[RunnableInfo]
    total: int
    limit: int
    offset: int


def pipe_info(
    record: Record, *, warnings: list[Problem] | None = None, guarantee: str | None = None
) -> PipeInfo:
    """The view of a pipeline."""
    about = {"warnings": warnings, "guarantee": guarantee}
    return PipeInfo.model_validate({**common_fields(record), **_flow_fields(record), **about})


def runnable_info(
    record: Record,
    *,
    referrers: list[Referrer] | None = None,
    warnings: list[Problem] | None = None,
    guarantee: str | None = None,
) -> RunnableInfo:
    """The view of a source, task or sink."""
    about = {"kind": record.kind, "referrers": referrers, "warnings": warnings, "guarantee": guarantee}
    return RunnableInfo.model_validate({**common_fields(record), **_flow_fields(record), **about})


def _flow_fields(record: Record) -> dict[str, Any]:
    placed = ("status", "phase", "queue_position", "waits_for", "running_revision", "worker")
    names = (*placed, "error", "attempts", "failed_attempts", "ops")
    flow = record.flow
    if flow is None:
        return {**dict.fromkeys(names), "attempts": []}
    return {name: getattr(flow, name) for name in names}
