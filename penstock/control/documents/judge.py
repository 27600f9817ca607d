"""Validation of documents before they are saved: alone, as a bundle, and with their referrers.

Structure and references are checked here; a worker does the checks that need Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import httpx

from penstock.control.documents.edits import FlowPlan
from penstock.control.fleet.assignments import Flows, WorkerInfo
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry.bundle import Mode
from penstock.control.registry.records import Record
from penstock.control.registry.store import Registry
from penstock.engine.plan.analysis import Analysis, analyse, offline
from penstock.errors import Invalid, Problem, Unavailable
from penstock.settings import Settings
from penstock.specs.documents import derive_id, runs
from penstock.specs.references import made_stream

WORKER_WAIT_S = 60.0
"""Seconds that a request waits for a worker that is starting, or being replaced."""

POLL_S = 0.05

A = TypeVar("A")


class Judge:
    """Validates documents before they are saved."""

    def __init__(self, settings: Settings, registry: Registry, flows: Flows, rpc: RpcClient) -> None:
        self.settings, self.registry, self.flows, self.rpc = settings, registry, flows, rpc
        self._defaults = settings.defaults.model_dump()

    def all(self, documents: Sequence[Any], *, alone: bool = False) -> list[Analysis]:
        """Validate documents that may refer to each other, and to registered ones unless `alone`."""
        seen = [*documents, *self._made_with(documents, alone)]
        judged = self.ask(lambda worker: self.rpc.analyse(worker, seen, alone=alone), _no_worker())
        return judged[: len(documents)]

    def plans(self, documents: Sequence[Any]) -> list[FlowPlan]:
        """The effects on flows if these documents were saved."""
        return self.ask(lambda worker: self.rpc.plan(worker, list(documents)), _no_worker())

    def ask(self, question: Callable[[WorkerInfo], A], no_worker: Problem) -> A:
        """The answer of a worker; `Unavailable` with `no_worker` if none could be reached.

        An unreachable worker may just have been killed while its lease is still valid: then another worker,
        or its replacement, is asked.
        """
        deadline = time.monotonic() + WORKER_WAIT_S
        silent: set[str] = set()
        while (worker := self.worker(deadline - time.monotonic(), silent)) is not None:
            try:
                return question(worker)
            except httpx.HTTPStatusError as error:
                message = f"worker {worker.id} could not answer: {error.response.status_code}"
                hint = "its log says why"
                raise Unavailable(Problem(code="worker_failed", message=message, hint=hint)) from None
            except httpx.ReadTimeout:
                break  # the worker is computing the answer; another would be no faster
            except httpx.HTTPError:
                if time.monotonic() >= deadline:
                    break
                silent.add(worker.id)
                time.sleep(POLL_S)
        raise Unavailable(no_worker)

    def for_saving(self, raw: Any, desired: str | None) -> Analysis:
        """Validate a document; `Invalid` unless it may be saved as it is.

        A document that is not to run now may be saved with an invalid spec. A document without a flow may be
        saved while no worker can check it: it is checked with a pipeline that uses it.
        """
        rests = _runs(raw) and desired not in (None, "active")
        active = _runs(raw) and not rests
        analysis = analyse(raw, lambda *_: None, self.registry.ids, self._defaults)
        if analysis.valid and (active or self.worker(0.0 if rests else WORKER_WAIT_S) is not None):
            (analysis,) = self.all([raw])
        if not analysis.valid and not (rests and _has_identity(analysis)):
            raise Invalid(*analysis.errors)
        return analysis

    def bundle(self, documents: Sequence[Any], mode: Mode) -> list[Any]:
        """The documents of a bundle with inferred settings; `Invalid` with the problems of all."""
        if not documents:
            return []
        judged = self.all(documents, alone=mode == "replace")
        problems = [
            problem.model_copy(update={"path": f"documents[{i}].{problem.path or ''}".rstrip(".")})
            for i, (raw, analysis) in enumerate(zip(documents, judged, strict=True))
            for problem in analysis.errors
            if desired_of(raw) in (None, "active") or not _has_identity(analysis)
        ]
        if problems:
            raise Invalid(*problems)
        return [analysis.document or raw for raw, analysis in zip(documents, judged, strict=True)]

    def referrers(self, record: Record, document: Mapping[str, Any]) -> None:
        """Refuse a change to a shared document that would break a running flow."""
        affected = self.registry.dependents(record.kind, record.id)
        running = [each for each in affected if each.flow and each.flow.status == "active"]
        if not running:
            return
        judged = self.all([document, *(each.document for each in running)])[1:]
        problems = [
            problem.model_copy(update={"message": f"{_title(each)} would break: {problem.message}"})
            for each, analysis in zip(running, judged, strict=True)
            for problem in analysis.errors
        ]
        if problems:
            raise Invalid(*problems)

    def worker(self, wait_s: float, silent: Collection[str] = ()) -> WorkerInfo | None:
        """A worker that can answer, preferably not a `silent` one; waits for one that is starting."""
        deadline = time.monotonic() + wait_s
        while True:
            able = [worker for worker in self.flows.workers() if worker.alive]
            if able:
                return min(able, key=lambda worker: (worker.id in silent, worker.flows))
            if time.monotonic() >= deadline or self.settings.workers == 0:
                return None
            time.sleep(POLL_S)

    def _made_with(self, documents: Sequence[Any], alone: bool) -> list[dict[str, Any]]:
        """The streams that do not exist yet and will be created with these documents."""
        made = [found for raw in documents if isinstance(raw, Mapping) and (found := made_stream(raw))]
        if not made:
            return []
        known = offline(documents)[1]("Stream") | (set() if alone else self.registry.ids("Stream"))
        by_id = {derive_id(stream["metadata"]["name"]): stream for stream in made}
        return [stream for stream_id, stream in by_id.items() if stream_id not in known]


def desired_of(raw: Any) -> str | None:
    """The desired status in a document; None if it has no flow."""
    status = raw.get("status") if _runs(raw) else None
    return status if isinstance(status, str) else None


def _runs(raw: Any) -> bool:
    return isinstance(raw, Mapping) and runs(raw)


def _title(record: Record) -> str:
    return f"{record.kind.lower()} '{record.name}'"


def _has_identity(analysis: Analysis) -> bool:
    """Whether an invalid document can be saved: its envelope is valid, only its spec is not."""
    return all((problem.path or "").startswith("spec") for problem in analysis.errors)


def _no_worker() -> Problem:
    return Problem(
        code="no_worker",
        message="no worker is ready to check this document",
        hint="wait a moment and try again, or save it with status: paused",
    )
