"""Validation of documents before they are saved: alone, as a bundle, and with their referrers.

Structure and references are checked here; a worker does the checks that need Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

import httpx

from penstock.control.documents.context import context_of
from penstock.control.documents.edits import FlowPlan
from penstock.control.documents.import_progress import Checking
from penstock.control.fleet.assignments import Flows, WorkerInfo
from penstock.control.fleet.question_process import QuestionProcess
from penstock.control.questions.rpc import QuestionFailed, RpcClient
from penstock.control.registry.bundle import Mode, in_bundle
from penstock.control.registry.records import Record
from penstock.control.registry.store import Registry
from penstock.engine.plan.analysis import Analysis, analyse, needs_spark, offline
from penstock.errors import Invalid, Problem, Unavailable
from penstock.policy import Policy
from penstock.settings import Settings
from penstock.specs.catalog import Role, catalog
from penstock.specs.documents import StreamDocument, derive_id, runs
from penstock.specs.references import made_stream
from penstock.specs.validation import parse
from penstock.streams.home import no_cluster

WORKER_WAIT_S = 60.0
"""Seconds that a request waits for a worker that is starting or being replaced."""

POLL_S = 0.05

By = Literal["any", "apart", "with_flows"]
"""The workers that may answer: `any`, preferably one for questions only; `apart`: only one for questions, if
there is one, because the question runs user code; `with_flows`, because the question delivers events."""

A = TypeVar("A")


class WorkerBusy(Unavailable):
    """A worker is available, but has not responded in time."""

    retry_after = 30.0


class Judge:
    """Validates documents before they are saved."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        flows: Flows,
        rpc: RpcClient,
        process: QuestionProcess | None = None,
    ) -> None:
        self.settings, self.registry, self.flows, self.rpc = settings, registry, flows, rpc
        self._process = process
        self._defaults = settings.defaults.model_dump()

    def all(
        self,
        documents: Sequence[Any],
        *,
        alone: bool = False,
        asks: Callable[[Any], bool] = needs_spark,
        progress: Checking | None = None,
    ) -> list[Analysis]:
        """Validate documents that may refer to each other, and to registered ones unless `alone`.

        Structure and references are checked here. The valid documents for which `asks` is true are then
        sent to a worker, in one question.
        """
        seen = [*documents, *self._made_with(documents, alone)]
        lookup, known = context_of(seen, self.registry, alone=alone)
        policy = Policy.of(self.settings)
        found = [analyse(raw, lookup, known, self._defaults, policy=policy) for raw in documents]
        only = [i for i, raw in enumerate(documents) if found[i].valid and asks(raw)]
        if progress is not None:
            progress.here = len(documents) - len(only)
        if only:
            number = None if progress is None else progress.id

            def question(worker: WorkerInfo) -> list[Analysis]:
                if progress is not None:
                    progress.worker = worker
                return self.rpc.analyse(worker, seen, alone=alone, only=only, number=number)

            judged = self.ask(question, _no_worker())
            for i, analysis in zip(only, judged, strict=True):
                found[i] = analysis
        return [self._placed(raw, analysis) for raw, analysis in zip(documents, found, strict=True)]

    def plans(self, documents: Sequence[Any]) -> list[FlowPlan]:
        """The effects on flows if these documents were saved."""
        found = self.ask(lambda worker: self.rpc.plan(worker, list(documents)), _no_worker())
        elsewhere = {(plan.kind, plan.id): home for plan in found if (home := self._home(plan))}
        for home in set(elsewhere.values()):  # the checkpoints of these flows are only there
            there = [each for each in self.flows.workers() if each.home == home and each.alive]
            worker = min(there, key=lambda each: not each.answers_only, default=None)
            if worker is None:
                message = (
                    "this edit can't be checked: the progress of the flow is on a machine without a worker"
                )
                raise Unavailable(Problem(code="worker_away", message=message, hint="start a worker there"))
            theirs = {(plan.kind, plan.id): plan for plan in self.rpc.plan(worker, list(documents))}
            found = [
                theirs.get((plan.kind, plan.id), plan)
                if elsewhere.get((plan.kind, plan.id)) == home
                else plan
                for plan in found
            ]
        return found

    def _home(self, plan: FlowPlan) -> str | None:
        record = self.registry.find(plan.kind, plan.id)
        return record.flow.home if record and record.flow else None

    def ask(self, question: Callable[[WorkerInfo], A], no_worker: Problem, by: By = "any") -> A:
        """The answer of a worker; `Unavailable` with `no_worker` if none could be reached, or `WorkerBusy`.

        An unreachable worker may have been killed while its lease is still valid, and a worker that is
        shutting down rejects questions: in both cases another worker, or the replacement, is asked.
        """
        deadline = time.monotonic() + WORKER_WAIT_S
        silent: set[str] = set()
        while (worker := self.worker(deadline - time.monotonic(), silent, by)) is not None:
            try:
                return question(worker)
            except httpx.ReadTimeout:
                if worker.answers_only:
                    raise self._hung(worker) from None
                raise WorkerBusy(_busy(worker)) from None  # another worker would be no faster
            except QuestionFailed as error:
                if error.problems[0].code != "interrupted" or time.monotonic() >= deadline:
                    if by == "any":
                        raise Unavailable(*error.problems) from None
                    raise
            except httpx.HTTPError as error:
                _require_silence(worker, error)
                if time.monotonic() >= deadline:
                    break
            silent.add(worker.id)
            time.sleep(POLL_S)
        raise Unavailable(no_worker)

    def _hung(self, worker: WorkerInfo) -> QuestionFailed:
        """Kill the question process, which hangs as a whole, and return the error for its question."""
        if self._process is not None:
            self._process.kill(worker.id)
        message = "the process that answers questions did not answer in time, and was ended"
        hint = "give it less to do; questions.deadline_ms allows more time"
        return QuestionFailed(408, [Problem(code="deadline_exceeded", message=message, hint=hint)])

    def for_saving(self, raw: Any, desired: str | None) -> Analysis:
        """Validate a document; `Invalid` unless it may be saved as it is.

        A document that is not to run now may be saved with an invalid spec. A document without a flow may be
        saved while no worker can validate it: it is validated with the pipelines that use it.
        """
        rests = _runs(raw) and desired not in (None, "active")
        active = _runs(raw) and not rests
        policy = Policy.of(self.settings)
        analysis = analyse(raw, lambda *_: None, self.registry.ids, self._defaults, policy=policy)
        analysis = self._placed(raw, analysis)
        if (
            analysis.valid
            and needs_spark(raw)
            and (active or self.worker(0.0 if rests else WORKER_WAIT_S) is not None)
        ):
            (analysis,) = self.all([raw])
        if not analysis.valid and not (rests and _has_identity(analysis)):
            raise Invalid(*analysis.errors)
        return analysis

    def bundle(self, documents: Sequence[Any], mode: Mode, progress: Checking | None = None) -> list[Any]:
        """The documents of a bundle with inferred settings; `Invalid` with the problems of all.

        Flows that are not to run now are validated with Spark only when they are resumed.
        """
        if not documents:
            return []
        judged = self.all(documents, alone=mode == "replace", asks=_runs_at_once, progress=progress)
        problems = [
            in_bundle(i, raw, problem)
            for i, (raw, analysis) in enumerate(zip(documents, judged, strict=True))
            for problem in analysis.errors
            if desired_of(raw) in (None, "active") or not _has_identity(analysis)
        ]
        if problems:
            raise Invalid(*problems)
        return [analysis.document or raw for raw, analysis in zip(documents, judged, strict=True)]

    def referrers(self, record: Record, document: Mapping[str, Any]) -> None:
        """Reject a change to a shared document that would break a running flow."""
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

    def worker(self, wait_s: float, silent: Collection[str] = (), by: By = "any") -> WorkerInfo | None:
        """A worker that can answer questions, preferably not a `silent` one; waits for a starting worker."""
        deadline = time.monotonic() + wait_s
        while True:
            able = self._able(by)
            if able:
                return min(
                    able,
                    key=lambda each: (each.id in silent, not each.answers_only, each.home != "", each.flows),
                )
            if time.monotonic() >= deadline or self.settings.workers == 0:
                return None
            time.sleep(POLL_S)

    def _able(self, by: By) -> list[WorkerInfo]:
        """The workers that may answer: without a question process, workers with flows answer all."""
        alive = [worker for worker in self.flows.workers() if worker.alive]
        with_flows = [worker for worker in alive if not worker.answers_only]
        if by == "with_flows":
            return with_flows
        apart = [worker for worker in alive if worker.answers_only]
        if self._process is not None and not apart:
            self._process.want(urgent=by == "apart")
        if by == "apart" and (apart or self._process is not None):
            return apart
        return alive

    def _placed(self, raw: Any, analysis: Analysis) -> Analysis:
        """The analysis, with an error if this installation can't store or run the document."""
        if self.settings.kafka.brokers is None and analysis.valid and _wants_kafka(raw, self._defaults):
            return analysis.model_copy(update={"valid": False, "errors": [no_cluster()]})
        return refuse_pipes(raw, analysis)

    def _made_with(self, documents: Sequence[Any], alone: bool) -> list[dict[str, Any]]:
        """The streams that do not exist yet and will be created with these documents."""
        made = [found for raw in documents if isinstance(raw, Mapping) and (found := made_stream(raw))]
        if not made:
            return []
        known = offline(documents)[1]("Stream") | (set() if alone else self.registry.ids("Stream"))
        by_id = {derive_id(stream["metadata"]["name"]): stream for stream in made}
        return [stream for stream_id, stream in by_id.items() if stream_id not in known]


def _require_silence(worker: WorkerInfo, error: httpx.HTTPError) -> None:
    """`Unavailable` if a worker has responded with a failure and is not shutting down."""
    if worker.answers_only and not isinstance(error, httpx.HTTPStatusError | httpx.ConnectError):
        # The question may have crashed the process, and must not crash a worker with flows next.
        message = "the process that answers questions has ended before it had an answer"
        hint = "let the question read or make less; questions.memory_mb allows more memory"
        raise QuestionFailed(503, [Problem(code="out_of_memory", message=message, hint=hint)]) from None
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
    if status not in (None, httpx.codes.SERVICE_UNAVAILABLE):
        message = f"worker {worker.id} failed to respond: {status}"
        raise Unavailable(
            Problem(code="worker_failed", message=message, hint="see the log of the worker")
        ) from None


def desired_of(raw: Any) -> str | None:
    """The desired status in a document; None if it has no flow."""
    status = raw.get("status") if _runs(raw) else None
    return status if isinstance(status, str) else None


def _runs_at_once(raw: Any) -> bool:
    return needs_spark(raw) and desired_of(raw) in (None, "active")


def _runs(raw: Any) -> bool:
    return isinstance(raw, Mapping) and runs(raw)


def _wants_kafka(raw: Any, defaults: Mapping[str, Any]) -> bool:
    """Whether a valid document is a stream in Kafka."""
    if raw["kind"] != "Stream":
        return False
    document = parse(raw, defaults)
    return isinstance(document, StreamDocument) and document.spec.storage == "kafka"


def refuse_pipes(raw: Any, analysis: Analysis) -> Analysis:
    """The analysis, with an error for each connector that needs pipes, which a worker does not have."""
    spec = raw.get("spec") if isinstance(raw, Mapping) else None
    if not isinstance(spec, Mapping):
        return analysis
    sinks = spec.get("sinks")
    ends: list[tuple[Role, str, Any]] = [("source", "spec.source", spec.get("source"))]
    ends += [
        ("sink", f"spec.sinks[{i}]", sink) for i, sink in enumerate(sinks if isinstance(sinks, list) else ())
    ]
    ends += [("source", "spec", spec)] if raw.get("kind") == "Source" else []
    ends += [("sink", "spec", spec)] if raw.get("kind") == "Sink" else []
    problems = [
        Problem(
            code="needs_pipe",
            message=f"a worker has no standard {'input' if role == 'source' else 'output'} for "
            f"'{end['type']}'",
            path=f"{path}.type",
            hint="run it with `penstock run FILE`, or use another connector here",
        )
        for role, path, end in ends
        if isinstance(end, Mapping)
        and getattr(catalog(role).classes.get(str(end.get("type"))), "piped", False)
    ]
    if not problems:
        return analysis
    return analysis.model_copy(update={"valid": False, "errors": [*analysis.errors, *problems]})


def _title(record: Record) -> str:
    return f"{record.kind.lower()} '{record.name}'"


def _has_identity(analysis: Analysis) -> bool:
    """Whether an invalid document can be saved: its envelope is valid, only its spec is not."""
    return all((problem.path or "").startswith("spec") for problem in analysis.errors)


def _busy(worker: WorkerInfo) -> Problem:
    return Problem(
        code="worker_busy",
        message=f"worker {worker.id} is busy and has not answered in time",
        hint="try again later, or add workers; a document with status: paused needs none",
    )


def _no_worker() -> Problem:
    return Problem(
        code="no_worker",
        message="no worker is ready to check this document",
        hint="wait a moment and try again, or save it with status: paused",
    )
