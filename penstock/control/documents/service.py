"""Operations on documents and flows; the API and the command line are thin layers on top."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.control.documents.edit_gate import NO_RESET, Gate, Reset
from penstock.control.documents.flow_states import at_rest, flow_of, proven, running
from penstock.control.documents.import_progress import Checking
from penstock.control.documents.judge import Judge, desired_of
from penstock.control.documents.raw import name_of, of_kind, patched, versioned
from penstock.control.documents.sealing import Sealing
from penstock.control.fleet.assignments import Flows, WorkerInfo
from penstock.control.fleet.coordinator import Coordinator
from penstock.control.fleet.processes import WorkerProcesses, WorkerStart
from penstock.control.fleet.progress import flow_name, remove_state
from penstock.control.fleet.question_process import QuestionProcess
from penstock.control.graph.flow_ends import lookup_in
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry import content
from penstock.control.registry.bundle import Mode
from penstock.control.registry.changes import require_current, require_same
from penstock.control.registry.records import Change, Diff, Page, Record, Revision
from penstock.control.registry.store import Registry, name_in_use
from penstock.control.streams.logs import Streams
from penstock.control.streams.readers import expect_readers
from penstock.engine.plan.analysis import Analysis
from penstock.errors import Conflict, NotFound, Problem, Unavailable
from penstock.settings import Loaded
from penstock.specs.documents import KINDS, RUNNABLE, derive_id, runs
from penstock.specs.references import made_stream

Action = Literal["pause", "resume", "stop", "start", "restart"]

SETTLE_S = 30.0
"""Seconds that an action waits for its effect before it returns regardless."""

PROOF_S = 5.0
"""Seconds that an edit waits for the new revision to prove that it runs. Draining the old revision, starting
the new one and delivering a batch may take longer.
"""

CROWDED_S = 1.0
"""Seconds that an action or an edit waits for a flow to run while other flows are starting or waiting to."""

POLL_S = 0.05

_FROM: dict[Action, tuple[set[str], str, str]] = {
    # action: statuses it applies to, desired status, hint if it does not apply
    "pause": ({"active", "paused"}, "paused", "only active flows can be paused"),
    "resume": ({"paused", "active"}, "active", "use start"),
    "stop": ({"active", "paused", "completed", "failed", "stopped"}, "stopped", ""),
    "start": ({"active", "paused", "completed", "failed", "stopped"}, "active", ""),
    "restart": ({"active", "completed", "failed", "stopped"}, "active", "use resume"),
}


@dataclass(frozen=True)
class Saved:
    """A saved document, and warnings about it."""

    record: Record
    warnings: list[Problem] = field(default_factory=list)
    unproven: bool = False
    """Whether the new revision has yet to prove that it runs: it is rolled back if it does not start."""


@dataclass(frozen=True)
class Readiness:
    """Whether this installation can run flows, and if not, why."""

    ready: bool
    problems: list[Problem]
    statuses: dict[str, dict[str, str]] = field(default_factory=dict)
    """The status of every flow, by kind and name."""
    startup: Sequence[WorkerStart] = field(default_factory=list)
    """The start-up state of the workers that were started with this server."""


class Service:
    """The operations of Penstock on one registry."""

    def __init__(
        self,
        loaded: Loaded,
        registry: Registry,
        processes: WorkerProcesses | None = None,
        questions: QuestionProcess | None = None,
    ) -> None:
        self.loaded, self.settings, self.registry = loaded, loaded.settings, registry
        self._processes = processes
        settings = loaded.settings
        self.flows = Flows(registry)
        self.rpc = RpcClient(settings.questions.deadline_ms / 1000)
        self.coordinator = Coordinator(settings, self.flows, self.rpc)
        self.judge = Judge(settings, registry, self.flows, self.rpc, questions)
        self.streams = Streams(settings, registry)
        self.sealing = Sealing(settings, registry)
        self.gate = Gate(self.judge, self.streams, self.sealing)

    # Documents

    def get(self, kind: str, name: str) -> Record:
        """A document; NotFound if there is none."""
        return self.registry.get(kind, name)

    def list(self, kind: str, **filters: Any) -> Page:
        """The documents of a kind; see `Registry.list`."""
        return self.registry.list(kind, **filters)

    def create(self, kind: str, raw: Any) -> Saved:
        """Save a new document. It must be valid, unless it has a flow that is not to run now."""
        raw = self.sealing.sealed(of_kind(kind, raw))
        desired = desired_of(raw)
        if (taken := self.registry.find(kind, name_of(raw) or "")) is not None:
            # Checked before validation: a user needs to know this first.
            raise name_in_use(taken)
        analysis = self.judge.for_saving(raw, desired)
        record = self.registry.create(
            analysis.document or raw, desired=desired, check_references=desired in (None, "active")
        )
        return self._saved(record, analysis)

    def replace(
        self, kind: str, name: str, raw: Any, *, expected: str | None = None, reset: Reset = NO_RESET
    ) -> Saved:
        """Save a new revision of a document."""
        return self._revise(kind, self.registry.get(kind, name), raw, expected, "update", reset)

    def patch(
        self, kind: str, name: str, patch: Any, *, expected: str | None = None, reset: Reset = NO_RESET
    ) -> Saved:
        """Merge a partial document, or a partial spec, into a document."""
        record = self.registry.get(kind, name)
        # The patch applies to the revision that was just read, even if another client writes meanwhile.
        return self._revise(kind, record, patched(record, patch), expected or record.etag, "patch", reset)

    def rollback(
        self, kind: str, name: str, revision: int, *, expected: str | None = None, reset: Reset = NO_RESET
    ) -> Saved:
        """Save the content of an earlier revision as the newest one."""
        record = self.registry.get(kind, name)
        raw = self.registry.revision(kind, name, revision).document
        return self._revise(kind, record, raw, expected, f"rollback to {revision}", reset)

    def delete(self, kind: str, name: str, *, expected: str | None = None) -> Record:
        """Delete a document that nothing refers to; its flow is stopped first."""
        record = self.registry.get(kind, name)
        require_current(record, expected)  # before anything stops
        self.registry.require_unreferenced(record)
        self.streams.require_at_rest(record)
        self._halt(record)
        record = self.registry.delete(kind, name, expected=expected)
        self._forget(record)
        self._poke()
        return record

    def revisions(self, kind: str, name: str) -> Sequence[Revision]:
        """Every revision of a document, newest first."""
        return self.registry.revisions(kind, name)

    def diff(self, kind: str, name: str, before: int | None, after: int | None) -> Diff:
        """The differences between two revisions: by default the current and the previous one."""
        current = self.registry.get(kind, name).revision
        after = current if after is None else after
        before = max(1, after - 1) if before is None else before
        return self.registry.diff(kind, name, before, after)

    def _revise(
        self, kind: str, record: Record, raw: Any, expected: str | None, origin: str, reset: Reset
    ) -> Saved:
        require_current(record, expected)
        raw = self.sealing.sealed(of_kind(kind, raw))
        desired = desired_of(raw) or (record.flow.desired if record.flow else None)
        analysis = self.judge.for_saving(raw, desired)
        document = analysis.document or raw
        require_same(record, document)
        self.streams.require_readable(record, document)
        self.judge.referrers(record, document)
        self._accept(record, document, reset)
        if not runs(document):
            self._halt(record)
        was_active = record.flow is not None and record.flow.status == "active"
        if record.flow is not None and not (was_active and desired == "active"):
            self.flows.forget_running(record.uid)  # there is no running revision to return to
        saved = self.registry.update(
            kind,
            record.id,
            document,
            expected=expected,
            desired=desired,
            origin=origin,
            check_references=desired in (None, "active") or not runs(document),
        )
        if saved.flow and record.flow and saved.revision != record.revision and desired == "active":
            self._poke()
            saved = self._await_start(saved)
            return self._saved(saved, analysis, record, unproven=not proven(saved))
        return self._saved(saved, analysis, record)

    def _accept(self, record: Record, document: Mapping[str, Any], reset: Reset) -> None:
        """Reject an edit that would lose state or progress, unless the user accepts the loss."""
        self.gate.pass_edit(record, document, reset)
        if reset.begin is not None:
            self._halt(record)
            record = self.registry.get(record.kind, record.id)
            if not at_rest(record):
                message = f"{record.kind.lower()} '{record.name}' is still shutting down"
                raise Unavailable(Problem(code="not_at_rest", message=message, hint="try again in a moment"))
            self.gate.begin_at(record, document, reset.begin)

    def _saved(
        self, record: Record, analysis: Analysis, before: Record | None = None, *, unproven: bool = False
    ) -> Saved:
        if record.kind == "Stream":
            self.streams.ensure(record, before)
        elif (made := made_stream(record.document)) is not None:
            self.streams.ensure(self.registry.get("Stream", made["metadata"]["name"]))
        expect_readers(self.streams, [(record, before)], self.document)
        if record.flow is not None and not analysis.valid:
            self.flows.found_invalid(record.uid, analysis.errors)
            record = self.registry.get(record.kind, record.id)
        self._poke()
        return Saved(record, analysis.warnings if analysis.valid else analysis.errors, unproven)

    def document(self, kind: str, document_id: str) -> Mapping[str, Any] | None:
        """The document with that id, if there is one."""
        record = self.registry.find(kind, document_id)
        return record.document if record else None

    def _await_start(self, saved: Record) -> Record:
        """Wait briefly until a new revision runs; Conflict if it did not start and was rolled back."""

        def settled(now: Record) -> bool:
            flow = now.flow
            return (
                flow is None
                or now.revision != saved.revision
                or proven(now)
                or (flow.running_revision is None and bool(flow.attempts))  # its start will be retried
                or (flow.worker is None and self.judge.worker(wait_s=0.0) is None)
            )

        now = self._settle(saved, self._unless_crowded(saved, settled), PROOF_S)
        if now.revision > saved.revision and now.flow and (now.flow.error or {}).get("code") == "rolled_back":
            error = now.flow.error or {}
            raise Conflict(
                Problem(
                    code="rolled_back",
                    message=str(error.get("message")),
                    path=error.get("path"),
                    hint=error.get("hint"),
                )
            )
        return now

    # Lifecycle of a flow

    def act(self, kind: str, name: str, action: Action) -> Record:
        """Pause, resume, stop, start or restart a flow, and wait briefly for the effect."""
        record = self.registry.get(kind, name)
        allowed, aim, instead = _FROM[action]
        status = flow_of(record).status
        if status not in allowed:
            raise Conflict(
                Problem(
                    code="invalid_transition",
                    message=f"{kind.lower()} '{record.name}' is {status}: it cannot {action}",
                    hint=instead,
                )
            )
        if aim == status and action != "restart":
            return record
        if aim == "active":
            analysis = self.judge.for_saving(record.document, "active")
            if analysis.document != record.document:  # settings that could not be inferred when it was saved
                self.registry.update(kind, record.id, analysis.document or {}, origin="inferred")
        self.flows.aim(record, aim)
        if action == "restart":
            self._end_run(record)
        self._poke()
        done = at_rest if aim != "active" else self._unless_crowded(record, running)
        return self._settle(record, done, SETTLE_S)

    def progress(self, kind: str, name: str) -> dict[str, Any]:
        """The counters and the state of a flow."""
        record = self.registry.get(kind, name)
        flow = flow_of(record)
        return {
            "name": record.name,
            "status": flow.status,
            "phase": flow.phase,
            "queue_position": flow.queue_position,
            "waits_for": flow.waits_for,
            "error": flow.error,
            "attempts": flow.attempts,
            "failed_attempts": flow.failed_attempts,
            "updated_at": flow.updated_at,
            **flow.ops,
        }

    # The whole registry

    def export(self) -> dict[str, Any]:
        """The registry as a bundle."""
        return self.registry.export()

    def import_(
        self,
        documents: Sequence[Any],
        mode: Mode,
        *,
        dry_run: bool,
        accept_reset: bool = False,
        progress: Checking | None = None,
    ) -> Sequence[Change]:
        """Save all documents of a bundle or none of them."""
        judged = self.judge.bundle([self.sealing.sealed(versioned(raw)) for raw in documents], mode, progress)
        planned = self.registry.plan_import(judged, mode)
        if dry_run:
            return planned
        before = self.registry.records()
        updated = {(change.kind, change.id) for change in planned if change.action == "update"}
        edits = {place: raw for raw in judged if (place := content.identity(raw)[:2]) in updated}
        if edits and not accept_reset:
            self.gate.require_accepted(list(edits.values()))
        for change in planned:
            if change.action == "delete":
                self.streams.require_at_rest(before[change.kind, change.id])
        for place, raw in edits.items():
            self.streams.require_readable(before[place], raw)
        changes = self.registry.apply_import(judged, mode)
        self._imported(changes, before)
        return changes

    def _imported(self, changes: Sequence[Change], before: Mapping[tuple[str, str], Record]) -> None:
        """Create, change and remove the logs of imported documents, and start their flows."""
        for change in changes:
            gone = before.get((change.kind, change.id)) if change.action == "delete" else None
            if gone is not None and at_rest(gone):
                self._forget(gone)  # otherwise its worker removes the data after stopping it
        saved = self.registry.records()
        touched = [(change.kind, change.id) for change in changes if change.action in ("create", "update")]
        for place in touched:
            if place in saved:
                self.streams.ensure(saved[place], before.get(place))
        readers = [(saved[place], before.get(place)) for place in touched if place in saved]
        expect_readers(self.streams, readers, lookup_in(saved.values()))
        self._poke()

    def add_missing(self, documents: Sequence[Any]) -> Sequence[Change]:
        """Save the documents that do not exist yet, all or none of them, without validation by a worker.

        Only for documents that are known to be valid, such as the demo's.
        """
        known = {kind: self.registry.ids(kind) for kind in KINDS}
        missing = [raw for raw in documents if derive_id(name_of(raw) or "") not in known[raw["kind"]]]
        if not missing:
            return []
        changes = self.registry.apply_import([versioned(raw) for raw in missing], "merge")
        self._imported(changes, {})
        return changes

    def check_resting(self, kind: str, name: str) -> None:
        """Let a worker validate a document that was saved without one and is not running; store errors."""
        record = self.registry.find(kind, name)
        if record is None or record.flow is None or record.flow.desired == "active" or record.flow.error:
            return
        (analysis,) = self.judge.all([record.document])
        if not analysis.valid:
            self.flows.found_invalid(record.uid, analysis.errors)
            with self.registry.begin() as conn:
                data = {"id": record.id, "uid": record.uid, "revision": record.revision}
                self.registry.emit(conn, kind, record.name, "updated", data)

    def validate(self, documents: Sequence[Any]) -> Sequence[Analysis]:
        """The problems of documents that may refer to each other and to registered ones."""
        return self.judge.all([self.sealing.sealed(raw) for raw in documents])

    def readiness(self) -> Readiness:
        """Whether flows can run, and the status of each flow."""
        try:
            statuses = self.registry.statuses()
            alive = [worker for worker in self.flows.workers() if worker.takes_flows]
        except Exception as error:
            problem = Problem(code="registry_down", message=f"the registry is not responding: {error}")
            return Readiness(False, [problem], startup=self.startup())
        startup = self.startup()
        problems = [] if alive else [_no_worker(startup)]
        return Readiness(not problems, problems, statuses, startup)

    def startup(self) -> Sequence[WorkerStart]:
        """The start-up state of each worker that was started with this server."""
        return self._processes.starts() if self._processes else []

    def workers(self) -> Sequence[WorkerInfo]:
        """Every known worker."""
        return self.flows.workers()

    def keeper_of(self, record: Record) -> WorkerInfo | None:
        """A worker with the files of a flow, if they are not in the home of this server.

        Unavailable if no worker of that home is running.
        """
        home = record.flow.home if record.flow else None
        if not home:
            return None
        found = [worker for worker in self.flows.workers() if worker.home == home and worker.alive]
        if not found:
            message = (
                f"the files of {record.kind.lower()} '{record.name}' are on a machine without a running "
                "worker"
            )
            hint = "start a worker with the same home there"
            raise Unavailable(Problem(code="worker_away", message=message, hint=hint))
        # Of machines that share only a URL, the one that runs the flow has its newest files.
        holder = record.flow.worker if record.flow else None
        return next((worker for worker in found if worker.id == holder), found[0])

    def drain_worker(self, start: str) -> WorkerInfo:
        """Drain the worker whose id starts with `start`: it accepts no more flows and releases its own."""
        found = [worker for worker in self.flows.workers() if worker.id.startswith(start)]
        if len(found) != 1:
            message = f"{len(found)} workers have an id that begins with '{start}'"
            hint = "`penstock worker ls` shows all of them"
            raise NotFound(Problem(code="not_found", message=message, hint=hint))
        self.flows.draining(found[0].id)
        self.coordinator.poke()
        return next((worker for worker in self.flows.workers() if worker.id == found[0].id), found[0])

    def _poke(self) -> None:
        """Notify the coordinator and the workers of a change at once."""
        self.coordinator.poke(workers=True)

    def _forget(self, record: Record) -> None:
        """Remove the data of a deleted document: progress, events and cursors."""
        if record.kind in RUNNABLE:
            remove_state(self.settings, record)
            self.streams.forget_reader(flow_name(record))
        self.streams.remove(record)

    def _halt(self, record: Record) -> None:
        """Stop a flow after its current batch, and wait until its worker has released it."""
        if not at_rest(record):
            self.flows.aim(record, "stopped")
            self._poke()
            self._settle(record, at_rest, SETTLE_S)

    def _end_run(self, record: Record) -> None:
        """Ask a flow's worker to end the run after the current batch; the worker then starts a new run."""
        holder = record.flow.worker if record.flow else None
        worker = next((each for each in self.flows.workers() if each.id == holder and each.alive), None)
        if worker is not None:
            self.rpc.restart(worker, record.uid, self.settings.worker.drain_ms / 1000)

    def _unless_crowded(self, record: Record, done: Callable[[Record], bool]) -> Callable[[Record], bool]:
        """`done`, or true once other flows are starting too, so that waiting would take too long."""
        patient = time.monotonic() + CROWDED_S
        return lambda now: done(now) or (time.monotonic() > patient and self.flows.starting(record.uid))

    def _settle(self, record: Record, done: Callable[[Record], bool], seconds: float) -> Record:
        deadline = time.monotonic() + seconds
        while True:
            record = self.registry.get(record.kind, record.id)
            if done(record) or time.monotonic() >= deadline:
                return record
            time.sleep(POLL_S)


def _no_worker(startup: Sequence[WorkerStart]) -> Problem:
    """Why no worker is ready, as far as this process knows."""
    failed = next((start for start in startup if start.error), None)
    if failed is not None:
        message = f"worker {failed.worker} failed to start: {failed.error}"
        return Problem(code="worker_failed", message=message, hint=f"see its log: {failed.log}")
    message = "no worker is ready: Spark is starting" if startup else "no worker is ready"
    return Problem(code="no_worker", message=message)
