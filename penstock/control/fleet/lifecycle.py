"""The lifecycle of a flow in a process: start, run, fail, back off, restart, end.

waiting → starting → running → (completed | failed | drained)
   ↑                    ↓
   └─────────────── backing_off
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from penstock.control.fleet.start_turns import Turn, Turns
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import Plan, plan_run
from penstock.engine.runtime.batch_log import BatchLine, write_batches
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.failures import Failure, failure_of
from penstock.engine.runtime.flow_log import NO_LOG, FlowLog
from penstock.engine.runtime.run import Run
from penstock.engine.runtime.work_mark import WORKER_DIED, WorkMark
from penstock.errors import PenstockError, Problem, Suspended
from penstock.spark.driver import has_ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Phase = Literal["waiting", "starting", "running", "draining", "backing_off", "idle"]
Outcome = Literal["completed", "failed"]

KEPT_ATTEMPTS = 20

UNRESOLVED_S = 2.0
"""Seconds before the next attempt if the registry was unreachable."""

FIRST_POLL_S, SLOWEST_POLL_S, IDLE_POLL_S = 0.1, 1.0, 10.0
"""Seconds between polls of a run's progress in Spark: after its start, while it has batches, while idle.

A batch or the end of a run wakes a keeper that polls rarely.
"""

IDLE_AFTER_S = 15.0
"""Seconds without a change of its counters after which a run counts as idle."""

SPARED = 1
"""Consecutive process deaths after which a flow still starts alongside others: most deaths are not caused by
a flow, and flows that start one at a time are down for longer."""

SUSPECT = 2**40
"""Added to the tickets of suspects, so that they start after all other waiting flows."""

IDLE_S, TRIAL_S = 2.0, 30.0
"""A trial succeeds after IDLE_S seconds without events to deliver, or TRIAL_S seconds without a failure."""


@dataclass(frozen=True)
class State:
    """The state of a flow at one time."""

    phase: Phase = "starting"
    outcome: Outcome | None = None
    error: dict[str, Any] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)
    ready: bool = False
    rejected: bool = False
    ops: dict[str, Any] = field(default_factory=dict)
    ticket: int | None = None
    """Set while the flow waits for its turn to start: the lowest ticket of a worker is next."""
    failed_attempts: int = 0
    """Failed attempts since the last successful batch, or since a run last had no events to process."""


def backoff_s(flow: Flow, failures: int) -> float:
    """Seconds to wait after the given number of consecutive failures."""
    return min(flow.restart.backoff_ms * 2.0 ** max(0, failures - 1), flow.restart.max_backoff_ms) / 1000


def _failed(failure: Failure) -> BatchLine:
    """A failed attempt, as a line of a flow's batch log."""
    nothing = dict.fromkeys(("batch", "events", "duration_ms", "latency_ms"))
    return BatchLine(at=datetime.now(UTC), outcome="failed", error=failure.problem.message, **nothing)


class Keeper:
    """Keeps one flow running until it ends or is asked to stop.

    The first attempt runs `planned`, if given. Each attempt waits for a turn among `turns`; `front` requests
    the front of the queue for the first attempt. A flow that may have killed a process also takes a turn
    among `suspects` until it has delivered a batch or has none to deliver, so that the next death is
    attributable to it.

    With `trial`, a failure before anything was delivered is not retried, and the state is `rejected`: there
    is an earlier revision to roll back to.
    """

    def __init__(
        self,
        name: str,
        resolve: Callable[[], Flow],
        spark: SparkSession,
        checkpoint: Callable[[Plan], str],
        *,
        earlier_ops: dict[str, Any] | None = None,
        failed_attempts: int = 0,
        trial: bool = False,
        planned: Plan | None = None,
        turns: Turns | None = None,
        suspects: Turns | None = None,
        front: bool = False,
        drain_s: float = 30.0,
        permitted: Callable[[], None] = lambda: None,
        on_change: Callable[[State], None] = lambda _: None,
        log: FlowLog = NO_LOG,
    ) -> None:
        self._resolve, self._spark, self._checkpoint = resolve, spark, checkpoint
        self._earlier_ops, self._trial, self._drain_s = earlier_ops, trial, drain_s
        self._permitted, self._on_change, self._log = permitted, on_change, log
        self._planned = planned
        self._turns, self._front = turns or Turns(), front
        self._suspects = suspects or Turns(1)
        self._turn: Turn | None = None
        self._suspected: Turn | None = None
        self._mark: WorkMark | None = None
        self._spared = SPARED
        self._stop = threading.Event()
        self._abort = threading.Event()
        self._wake = threading.Event()
        self._counters: Counters | None = None
        self._run: Run | None = None
        self._failures = self._tries = 0
        self._started_at = 0.0
        self._idle_since: float | None = None
        self._rarely = self._finishing = False
        self._trouble: Problem | None = None
        self._sent_back = False
        """Whether the attempt was skipped, since the flow first has to queue with the other suspects."""
        self.state = State(
            "starting" if turns is None else "waiting",
            ops=earlier_ops or {},
            failed_attempts=failed_attempts,
        )
        self._thread = threading.Thread(target=self._live, name=f"flow {name}", daemon=True)

    def start(self) -> None:
        """Start the thread of the flow."""
        self._thread.start()

    def drain(self) -> None:
        """Request a stop after the current batch, or now if no run has started. Does not wait."""
        self._stop.set()
        self._wake.set()
        if (turn := self._turn) is not None:
            turn.leave()
        if self._finishing and (run := self._run) is not None:
            run.give_up()

    def abort(self) -> None:
        """Request a stop now: this process no longer holds the lease of the flow."""
        self._abort.set()
        self.drain()
        if (run := self._run) is not None:
            run.give_up()  # also if the keeper is draining

    def join(self, seconds: float | None = None) -> None:
        """Wait until the flow has ended, for at most `seconds`."""
        self._thread.join(seconds)

    def catch_up(self, sink: str) -> bool:
        """Make a sink that is behind retry now; false if the flow has no run."""
        run = self._run
        if run is None:
            return False
        run.catch_up(sink)
        self._wake.set()
        return True

    @property
    def ended(self) -> bool:
        """Whether the thread of the flow has ended."""
        return not self._thread.is_alive()

    def _live(self) -> None:
        try:
            self._keep()
        finally:
            if not has_ended(self._spark):
                self._end_turns()
            if self._mark is not None:
                self._mark.close()

    def _keep(self) -> None:
        while not self._stop.is_set() and self._await_turn():
            failure, flow = self._attempt()
            if failure is not None and has_ended(self._spark):  # the next process reads it from the work mark
                self._become(phase="idle", ready=False)
                return
            self._end_turns()
            if self._mark is not None:
                self._mark.rest()
            if self._sent_back:
                continue
            if failure is None or self._stop.is_set():
                break
            if self._last_failure(failure, flow):
                if self._mark is not None:
                    self._mark.forgive()
                rejected = self._trial and not failure.passing
                self._become(phase="idle", **({"rejected": True} if rejected else {"outcome": "failed"}))
                return
            self._become(phase="backing_off", ready=False)
            wait = UNRESOLVED_S if flow is None else backoff_s(flow, self._failures)
            self._log.info(f"retrying in {wait:g} s", attempt=self._tries + 1)
            self._stop.wait(wait)
        if self._stop.is_set():
            self._log.info(
                "released: the flow is no longer assigned to this worker"
                if self._abort.is_set()
                else "drained"
            )
            self._become(phase="idle", ready=False, ticket=None)

    def _await_turn(self) -> bool:
        """Wait for the turn to start; false if the flow is to stop instead. Does not count as an attempt."""
        if self._is_suspect():
            turn = self._suspects.ask()
            if not self._queue(
                turn, "waiting: flows suspected of a crash start one at a time", SUSPECT + turn.ticket
            ):
                return False
            self._suspected = self._turn
        turn = self._turns.ask(front=self._front)
        self._front = False
        return self._queue(turn, "waiting for its turn to start", turn.ticket)

    def _queue(self, turn: Turn, why: str, ticket: int | None = None) -> bool:
        self._turn = turn
        if self._stop.is_set():
            turn.leave()
        if not turn.begun:
            self._log.info(why)
            self._become(phase="waiting", ready=False, ticket=ticket)
        return turn.wait()

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.end()

    def _end_suspicion(self) -> None:
        turn, self._suspected = self._suspected, None
        if turn is not None:
            turn.end()

    def _end_turns(self) -> None:
        self._end_turn()
        self._end_suspicion()

    def _attempt(self) -> tuple[Failure | None, Flow | None]:
        """Run the flow once: the failure that ended the run, or None if it completed or was stopped."""
        self._become(phase="starting", ready=False, ticket=None)
        self._sent_back = False
        flow: Flow | None = None
        try:
            plan, self._planned = self._planned, None
            flow = self._resolve() if plan is None else plan.flow
            mark = self._mark_of(flow)
            self._sent_back = self._is_suspect() and self._suspected is None
            if self._sent_back:
                return None, flow
            if has_ended(self._spark):  # otherwise the flow would be suspected of the crash
                raise Suspended("the JVM of this worker exited")
            mark.start()
            plan = plan or plan_run(flow, self._spark)
            run = Run(
                plan,
                self._checkpoint(plan),
                self._counters_of(flow),
                permitted=self._permitted,
                on_end=self._wake.set,
                on_batch=self._on_batch,
            )
            run.start()
            self._started_at = time.monotonic()
            self._log.info("started")
        except Exception as error:
            return failure_of(error), flow
        self._run = run
        try:
            self._watch(run)
            self._finish(run)
            end = run.end
            failure = run.failure if end == "failed" else None
        except Exception as error:  # Spark itself has ended
            return failure_of(error), flow
        finally:
            self._run = None
            run.close()
        if end == "completed":
            self._log.info("completed: end of input reached")
            if self._mark is not None:
                self._mark.forgive()
            self._become(phase="idle", outcome="completed", ready=True)
        return failure, flow

    def _watch(self, run: Run) -> None:
        poll, ops, since = FIRST_POLL_S, self.state.ops, time.monotonic()
        while True:
            ended = run.observe()
            self._take_notice(run)
            if ended:
                return
            if run.answered:  # the processes that a start needs are running
                self._end_turn()
            if self.state.ops is not ops or not self.state.ready:
                ops, since = self.state.ops, time.monotonic()
            self._rarely = time.monotonic() - since > IDLE_AFTER_S
            woken = self._wake.wait(poll)
            self._wake.clear()
            if self._stop.is_set():
                break
            if self._rarely and woken:
                since = time.monotonic()
            slowest = IDLE_POLL_S if self._rarely and not woken else SLOWEST_POLL_S
            settled = self.state.ready and self._turn is None  # other flows may wait for this turn to end
            poll = min(poll * 1.2, slowest) if settled else FIRST_POLL_S
        if self._abort.is_set():
            run.stop()
        else:
            self._log.info("draining: finishing the current batch")
            self._become(phase="draining")
            run.drain(self._drain_s)
        self._take_notice(run)

    def _finish(self, run: Run) -> None:
        """Let sinks catch up after the end of the input, until the flow is requested to stop."""
        self._end_turn()
        self._finishing = True
        try:
            if self._stop.is_set():
                run.give_up()
            if run.end == "completed":
                run.finish()
                self._take_notice(run)
        finally:
            self._finishing = False

    def _on_batch(self, begins: bool) -> None:
        if self._mark is not None:
            self._mark.delivering(begins)
        if not begins and self._rarely:  # otherwise the next poll is soon
            self._wake.set()

    def _mark_of(self, flow: Flow) -> WorkMark:
        """The work mark of the flow; the first call raises if processes keep dying while they run the flow.

        A first death may have any cause. The second makes the flow a suspect, and the next death, of a
        process in which it was the only suspect, is a failure. A flow with few attempts is a suspect at once.
        """
        if self._mark is None:
            assert flow.site.state is not None
            self._mark = mark = WorkMark(flow.site.state)
            self._spared = SPARED if flow.restart.max_attempts > SPARED + 1 else 0
            self._failures = self._tries = mark.deaths
            if (died := mark.take_up()) is not None:
                if mark.deaths > self._spared + 1 or flow.restart.max_attempts == 1:
                    raise PenstockError(died)
                self._log.warning(died.message, code=died.code)
                self._failures = self._tries = mark.deaths
        return self._mark

    def _is_suspect(self) -> bool:
        """Whether this flow may be the cause of process deaths, so that it has to start alone."""
        return self._mark is not None and self._mark.deaths > self._spared

    def _take_notice(self, run: Run) -> None:
        self._note_trouble(run)
        if self.state.failed_attempts and self._rests(run) and run.trouble is None:
            run.counters.good()
        ops = run.counters.snapshot()
        failed = 0 if ops["good_at"] != self.state.ops.get("good_at") else self.state.failed_attempts
        delivered = ops["batches"] > self.state.ops.get("batches", 0)
        if run.answered and self._mark is not None:
            self._mark.answered()
        if delivered:
            self._failures = self._tries = 0
            if self._mark is not None:
                self._mark.forgive()
        if self._suspected is not None and (delivered or self._endures(run)):
            self._end_suspicion()
        if self._trial and (delivered or self._endures(run)):
            self._trial = False
        phase: Phase = "running" if run.ready and self.state.phase == "starting" else self.state.phase
        ready = self.state.ready or (run.ready and not self._trial)
        if ready and not self.state.ready:
            self._log.info("ready")
        if ops != self.state.ops or phase != self.state.phase or ready != self.state.ready:
            self._become(phase=phase, ready=ready, ops=ops, failed_attempts=failed)

    def _note_trouble(self, run: Run) -> None:
        """Report a failure of the source that does not end the run, once."""
        trouble, known = run.trouble, self._trouble
        self._trouble = trouble
        if trouble is not None and trouble is not known:
            self._become(error={**trouble.model_dump(), "at": time.time()})

    def _endures(self, run: Run) -> bool:
        """Whether a run that has delivered nothing yet counts as having survived its start."""
        return self._rests(run) or time.monotonic() - self._started_at > TRIAL_S

    def _rests(self, run: Run) -> bool:
        """Whether a run has had no events to deliver for a while."""
        now = time.monotonic()
        if not run.idle:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        return self._idle_since is not None and now - self._idle_since > IDLE_S

    def _last_failure(self, failure: Failure, flow: Flow | None) -> bool:
        """Record a failure; true if the flow is not to be retried."""
        self._note(failure)
        if flow is not None:
            write_batches(flow.site.state, [_failed(failure)])
        if failure.fatal or (flow is None and not failure.passing):
            return True
        if flow is None:
            return False
        if failure.problem.code == WORKER_DIED:  # another flow may have caused it
            return self._failures >= flow.restart.max_attempts
        if flow.restart.policy == "never":
            return True
        return not failure.passing and (self._trial or self._failures >= flow.restart.max_attempts)

    def _note(self, failure: Failure) -> None:
        self._tries += 1
        if not failure.passing:  # failures of the machine do not count against the flow
            self._failures += 1
        problem = failure.problem
        about = {"code": problem.code, "path": problem.path, "hint": problem.hint}
        self._log.error(f"failed: {problem.message}", **about, attempt=self._tries)
        error = {**failure.problem.model_dump(), "at": time.time()}
        attempts = [*self.state.attempts, {**error, "attempt": self._tries}][-KEPT_ATTEMPTS:]
        failed = max(self.state.failed_attempts + 1, self._tries)
        self._become(error=error, attempts=attempts, failed_attempts=failed)

    def _counters_of(self, flow: Flow) -> Counters:
        """The counters so far, for the current sinks of the flow."""
        earlier = self._counters.snapshot() if self._counters else self._earlier_ops
        self._counters = Counters({sink.id: sink.component.guarantee for sink in flow.sinks}, earlier)
        return self._counters

    def _become(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self._on_change(self.state)
