"""Receiving events for a flow: a thread that appends them from the source's client to the input stream."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.connectors.received import Ended, Received, ReceivedSource, Receiver
from penstock.engine.plan.flow import Flow
from penstock.engine.runtime.failures import Failure, failure_of
from penstock.engine.runtime.flow_log import flow_log
from penstock.errors import Backpressure, Invalid, PenstockError, Problem, Unavailable
from penstock.frames.faults import Fault
from penstock.frames.logs import LOGS
from penstock.streams.committer import Closed, Dropped
from penstock.streams.storage import Producer, Refusal, WriteFailed

WAIT_S = 0.5
"""Seconds that a receiver waits for events before the thread checks whether to stop."""

LOOK_S = 0.2
"""Seconds that an append waits for room before the thread checks whether to stop."""

LAG_S = 2.0
"""Seconds between two requests for the lag."""

PRODUCER = "receiver"


class Reception:
    """Appends the events of a receiver to the input stream of a flow until it ends, fails or is stopped.

    Once the other system has been reached, in this run or an earlier one, an outage does not end the flow:
    the reception retries, with the pauses of `restart`, and `trouble` has the reason. Before that, a failure
    ends the run, so that a flow with a wrong address does not seem to run.
    """

    def __init__(self, flow: Flow, source: ReceivedSource, permitted: Callable[[], None]) -> None:
        self._flow, self._source, self._permitted = flow, source, permitted
        place = source.reads(flow.site)
        self._log = LOGS.log(place.directory)
        if self._log.storage.spec.schema_ != place.spec.schema_:
            message = "the columns of the source are not those of its input stream"
            hint = "declare the columns in its 'schema'"
            raise Invalid(Problem(code="schema_unknown", message=message, path="schema", hint=hint))
        self._producer = f"{flow.site.flow}/{PRODUCER}"
        self._stopped = threading.Event()
        self._receiver: Receiver | None = None
        self._established = False
        self._asked_at = 0.0
        self._events = self._failures = self._tried = 0
        self._full = False
        self.ended = False
        """Whether the other system has no more events."""
        self.failure: Failure | None = None
        """The failure that has ended the reception."""
        self.trouble: Problem | None = None
        """The failure because of which the reception is retrying."""
        self.lag: int | None = None
        self._thread = threading.Thread(target=self._live, name=f"reception of {flow.id}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Stop after the current append. The last received events may not be stored: they are received again.

        Waits up to `seconds`. A thread that takes longer appends nothing afterwards.
        """
        self._stopped.set()
        if (receiver := self._receiver) is not None:
            with contextlib.suppress(Exception):  # it may be closing
                receiver.stop()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def report(self) -> dict[str, Any]:
        """The state of the reception, for the view of the flow."""
        state = "ended" if self.ended else "waiting" if self._full else "receiving"
        if self.failure or self.trouble:
            state = "failed" if self.failure else "reconnecting"
        return {"state": state, "events": self._events, "failures": self._failures}

    def _live(self) -> None:
        while not self._stopped.is_set():
            try:
                self._receive()
            except Ended:
                self.ended = True
                return
            except Exception as error:  # clients raise anything
                if self._stopped.is_set() or not self._takes_pause(error):
                    return

    def _receive(self) -> None:
        """Receive events until the reception is stopped, or an exception is raised."""
        progress = self._log.progress(self._producer)
        self._established = self._established or progress.position is not None
        receiver = self._receiver = self._source.receiver(self._flow.site)
        receiver.warn = flow_log(self._flow.site).warning
        number = progress.following
        try:
            self._flow.site.policy.require(self._source)
            receiver.open(progress.position)
            self._established = True
            while not self._stopped.is_set():
                received = receiver.receive(WAIT_S)
                if self.trouble is not None:
                    flow_log(self._flow.site).info("reconnected to the source")
                    self.trouble = None
                if received is not None and received.events.num_rows:
                    if not self._append(received, number):
                        return
                    number += 1
                    self._events += received.events.num_rows
                if received is not None:
                    receiver.acknowledge(received)
                self._ask_lag(receiver)
        finally:
            self._receiver = None
            with contextlib.suppress(Exception):  # the earlier failure is the relevant one
                receiver.close()

    def _append(self, received: Received, number: int) -> bool:
        """Append events; false if the reception was stopped while the stream was full."""
        producer = Producer(self._producer, number, self._flow.site.epoch, position=received.position)
        while not self._stopped.is_set():
            self._permitted()  # invariant 6
            try:
                self._log.append(received.events, producer=producer, tx=received.tx, wait_s=LOOK_S)
            except Backpressure:
                self._full = True
                continue
            except Dropped:
                pass  # according to the mode of the buffer; the stream has counted it
            self._full = False
            return True
        return False

    def _ask_lag(self, receiver: Receiver) -> None:
        if time.monotonic() - self._asked_at > LAG_S:
            self.lag, self._asked_at = receiver.lag(), time.monotonic()

    def _takes_pause(self, error: Exception) -> bool:
        """Wait before the next attempt; false if there is no further attempt."""
        failure = self._failure_of(error)
        restart = self._flow.restart
        self._failures += 1
        if failure.fatal or restart.policy == "never" or not self._established:
            self.failure = failure
            return False
        self._tried = self._tried + 1 if self.trouble is not None else 1
        pause_s = min(restart.backoff_ms * 2.0 ** (self._tried - 1), restart.max_backoff_ms) / 1000
        problem = self.trouble = failure.problem
        flow_log(self._flow.site).warning(
            f"the source failed: {problem.message}; retrying in {pause_s:g} s", code=problem.code
        )
        self._stopped.wait(pause_s)
        return True

    def _failure_of(self, error: Exception) -> Failure:
        if isinstance(error, Refusal):
            return failure_of(Fault(error.code, str(error)))
        if isinstance(error, PenstockError):
            located = map(self._flow.source.place.locate, error.problems)
            return failure_of((Invalid if isinstance(error, Invalid) else Unavailable)(*located))
        if isinstance(error, WriteFailed | Closed):
            return failure_of(error)
        failure = failure_of(error)
        return Failure(self._flow.source.place.locate(failure.problem), failure.fatal, failure.passing)
