"""Counters of a flow: events, batches and failures so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from penstock.engine.delivery.sink_states import State
from penstock.engine.runtime.batch_log import BatchLine
from penstock.engine.runtime.latency_goal import LatencyGoal
from penstock.engine.runtime.meter import Meter


class Counters:
    """Totals of a flow, retained across restarts of its query.

    They are reported once a second, so after a kill the last second may be missing: they are metrics, and
    exactly-once delivery does not depend on them.
    """

    def __init__(self, sinks: Mapping[str, str], earlier: Mapping[str, Any] | None = None) -> None:
        earlier = earlier or {}
        before = earlier.get("sinks", {})
        self._lock = threading.Lock()
        self.goal: LatencyGoal | None = None
        self._input = int(earlier.get("input_events", 0))
        self._batches = int(earlier.get("batches", 0))
        self._letters = int(earlier.get("dead_letters", 0))
        self._good_at: float | None = earlier.get("good_at")
        self._last: dict[str, Any] | None = None
        self._behind: int | None = None
        self._receiver: dict[str, Any] | None = None
        self._ages: dict[int, float | None] = {}
        self._meter = Meter()
        self._steps: dict[str, dict[str, Any]] = {
            k: dict(v) for k, v in earlier.get("processors", {}).items()
        }
        self._sinks: dict[str, dict[str, Any]] = {
            name: {
                "guarantee": guarantee,
                "state": "in_sync",
                "events": 0,
                "batches": 0,
                "rejected": 0,
                "failures": 0,
                "missed_batches": 0,
                "last_error": None,
                "last_ack_at": None,
            }
            | {k: v for k, v in before.get(name, {}).items() if k != "guarantee"}
            for name, guarantee in sinks.items()
        }

    def stepped(
        self, step: str, taken: int, given: int, errors: int, ms: float | None, dropped: int | None = None
    ) -> None:
        """Count a batch that has passed a processor; without `ms`, its time is that of the whole Spark job.

        Without `dropped`, events that are neither output nor failed count as dropped.
        """
        with self._lock:
            counts = self._steps.setdefault(
                step, {"in": 0, "out": 0, "dropped": 0, "errors": 0, "ms": 0.0, "shared": ms is None}
            )
            counts["in"] += taken
            counts["out"] += given
            counts["errors"] += errors
            counts["dropped"] += max(0, taken - given - errors) if dropped is None else dropped
            counts["ms"] += ms or 0.0

    def late(self, step: str, events: int) -> None:
        """Count events that a processor has dropped as late."""
        with self._lock:
            if step in self._steps:
                self._steps[step]["dropped"] += events

    def aged(self, batch: int, ms: float | None) -> None:
        """Record the age in milliseconds of a delivered batch's oldest event; None if it is not known."""
        with self._lock:
            self._ages[batch] = ms

    def good(self) -> None:
        """Record that the flow is healthy: it has delivered a batch, or has nothing to process."""
        with self._lock:
            self._good_at = time.time()

    def lettered(self, letters: int) -> None:
        """Count dead letters of a batch."""
        with self._lock:
            self._letters += letters

    def acknowledged(self, sink: str, events: int, rejected: int = 0, seconds: float = 0.0) -> None:
        """Count a batch that a sink has acknowledged after `seconds`, and the events that it rejected."""
        with self._lock:
            if self.goal is not None:
                self.goal.sank(sink, seconds)
            counts = self._sinks[sink]
            counts["events"] += events
            counts["rejected"] += rejected
            counts["batches"] += 1
            counts["last_ack_at"] = time.time()

    def failed(self, sink: str, message: str) -> None:
        """Count a failure of a sink."""
        with self._lock:
            self._sinks[sink]["failures"] += 1
            self._sinks[sink]["last_error"] = message

    def missed(self, sink: str) -> None:
        """Count a batch that was committed without this sink, as the policy allows."""
        with self._lock:
            self._sinks[sink]["missed_batches"] += 1

    def stands(self, states: Mapping[str, State]) -> None:
        """Update the states of sinks."""
        with self._lock:
            for sink, state in states.items():
                self._sinks[sink]["state"] = state

    def received(self, report: dict[str, Any], lag: int | None) -> None:
        """Update the state of the receiver, and the number of events waiting in the other system."""
        with self._lock:
            self._receiver, self._behind = report, lag

    def progressed(self, progress: Mapping[str, Any], behind: int | None = None) -> BatchLine | None:
        """Process a progress report of Spark, and the number of events waiting in the source, if known.

        Returns the batch of the report, if it has one.
        """
        # The other sources are streams to join with, and the clock.
        source = (progress.get("sources") or [progress])[0]
        with self._lock:
            self._behind = behind if self._receiver is None else self._behind
            durations = progress.get("durationMs", {})
            if "addBatch" not in durations:  # an idle report, not a batch
                return None
            for counts in self._steps.values():
                if counts["shared"]:  # Spark runs these as one job: each gets the time of the job
                    counts["ms"] += float(durations["addBatch"])
            self._input += int(source.get("numInputRows", 0))
            self._batches += 1
            self._good_at = time.time()
            batch, took = int(progress["batchId"]), durations.get("triggerExecution")
            self._last = {
                "id": batch,
                "at": progress.get("timestamp"),
                "input_events": int(source.get("numInputRows", 0)),
                "duration_ms": took,
                # For a source without arrival times: as if the events had arrived when the batch began.
                "latency_ms": self._ages.pop(batch, took),
                "durations_ms": durations,
            }
            if self.goal is not None:
                self.goal.finished(self._last["input_events"], self._last["latency_ms"])
            return BatchLine(
                at=progress["timestamp"],
                batch=batch,
                events=self._last["input_events"],
                duration_ms=took,
                latency_ms=self._last["latency_ms"],
                outcome="committed",
                error=None,
            )

    def snapshot(self) -> dict[str, Any]:
        """All counters, in the API's format."""
        with self._lock:
            return {
                "input_events": self._input,
                "batches": self._batches,
                "good_at": self._good_at,
                "dead_letters": self._letters,
                "lag_events": self._behind,
                "receiver": self._receiver,
                "events_per_second": round(self._meter.mark(time.monotonic(), self._input) or 0.0, 2),
                "last_batch": self._last,
                "latency": None if self.goal is None else self.goal.report(),
                "processors": {step: dict(counts) for step, counts in self._steps.items()},
                "sinks": {name: dict(counts) for name, counts in self._sinks.items()},
            }
