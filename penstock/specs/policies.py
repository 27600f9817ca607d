"""The policies of a pipeline: batching, commit, delivery, placement and restart."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.specs.base import Spec
from penstock.specs.conditions import only_with
from penstock.specs.durations import parse_duration


class Batch(Spec):
    """The thresholds of a batch. They are soft: the first one that is reached closes the batch."""

    max_events: int = Field(default=10_000, ge=1, description="Close a batch at this many events.")
    max_bytes: int = Field(default=16 * 1024 * 1024, ge=1, description="Close a batch at this many bytes.")
    max_ms: int = Field(default=50, ge=0, description="Close a batch this long after its first event.")
    respect_source_tx: bool = Field(default=True, description="Never split a source transaction.")
    max_tx_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="A transaction that would make a batch larger than this fails the pipeline.",
    )
    max_tx_ms: int = Field(
        default=60_000,
        ge=0,
        description="A transaction still open this long after the append of its first event is processed "
        "without the rest, and counted.",
    )
    max_inflight: Literal["auto"] | int = Field(
        default="auto",
        description="Maximum number of batches processed at a time. `auto` lets the source decide.",
    )


THRESHOLDS = frozenset({"max_events", "max_bytes", "max_ms", "max_inflight"})
"""The fields of `batch` that the engine chooses under a latency goal."""


class PacedBatch(Batch):
    """Batching under a latency goal. `max_ms` is the longest time that events may wait."""

    latency_ms: int


def batching(batch: Batch, latency: str | None) -> Batch:
    """The batching rule of a flow: as declared, or derived from its latency goal."""
    if latency is None:
        return batch
    ms = parse_duration(latency)
    return PacedBatch(**batch.model_dump(exclude={"max_ms"}), max_ms=ms, latency_ms=ms)


class CommitPolicy(Spec):
    """Which sinks must acknowledge a batch before the checkpoint advances past it."""

    mode: Literal["all", "required", "quorum"] = Field(
        default="required",
        description="`all` sinks, those marked `required`, or any `quorum` of them.",
    )
    quorum: int | None = Field(
        default=None,
        ge=1,
        description="Number of sinks that must acknowledge.",
        json_schema_extra=only_with(mode=["quorum"]),
    )


class Effort(Spec):
    """Deadline and retries for the delivery of a batch to one sink."""

    deadline_ms: int = Field(
        default=60_000,
        ge=1,
        description="A batch that is not acknowledged within this time, including retries, counts as not "
        "delivered. Time spent computing the batch or waiting at the request of the sink is not included.",
    )
    retries: int = Field(default=3, ge=0, description="Retries after a failed attempt.")
    backoff_ms: int = Field(
        default=200, ge=0, description="Wait before the first retry; doubles with each retry, with jitter."
    )


class Placement(Spec):
    """The workers that may run a flow."""

    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels a worker must have, such as `zone: a`; all must match. Empty: any worker.",
    )


class Restart(Spec):
    """Restarts after a failure of a running pipeline. Every committed batch resets the count of attempts."""

    policy: Literal["on_failure", "never"] = Field(
        default="on_failure", description="Whether to restart after a failure."
    )
    max_attempts: int = Field(
        default=5,
        ge=1,
        description="Consecutive failures before the status becomes `failed`.",
        json_schema_extra=only_with(policy=["on_failure"]),
    )
    backoff_ms: int = Field(
        default=1_000,
        ge=0,
        description="Wait before the first restart; doubles with each restart.",
        json_schema_extra=only_with(policy=["on_failure"]),
    )
    max_backoff_ms: int = Field(
        default=60_000,
        ge=0,
        description="Longest wait between two restarts.",
        json_schema_extra=only_with(policy=["on_failure"]),
    )
