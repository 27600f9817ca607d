"""Test runs in a worker, requested by the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from penstock.engine.runtime.limits import limited
from penstock.engine.runtime.sql_queries import TookTooLong
from penstock.engine.trials.declared_tests import CaseResult, cases_of, run_case
from penstock.engine.trials.result import TestResult
from penstock.engine.trials.samples import Text
from penstock.engine.trials.trial import Bench, try_out
from penstock.errors import PenstockError, Problem, Unavailable
from penstock.policy import Policy
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.control.fleet.worker import Worker

AT_ONCE = 2
"""Maximum concurrent test runs on a worker, so that its flows keep running."""

PATIENCE_S = 20.0
"""Seconds that a test run waits for others to end."""


class TestRequest(BaseModel):
    """A document, and the input of its test run: events, a text with events, or its own tests."""

    document: Any
    events: list[Any] | None = None
    text: str | None = None
    content_type: str | None = None
    given: dict[str, Any] = {}
    cases: list[str] | None = None
    """Names of tests; empty: all."""


class Tested(TestResult):
    """The result of a test run, or of the tests of a document."""

    cases: list[CaseResult] | None = Field(default=None, description="Results of the document's tests.")


class TestAnswer(BaseModel):
    """The result of a test run, or the reason why there was none."""

    result: Tested | None = None
    status: int = 200
    problems: list[Problem] = []


def test_routes(worker: Worker) -> APIRouter:
    """The routes of a worker for test runs."""
    router = APIRouter()
    places = threading.BoundedSemaphore(AT_ONCE)

    @router.post("/test")
    async def test(request: TestRequest) -> TestAnswer:
        try:
            return TestAnswer(result=await run_in_threadpool(_waiting, worker, request, places))
        except PenstockError as error:
            return TestAnswer(status=error.status, problems=error.problems)

    return router


def _waiting(worker: Worker, request: TestRequest, places: threading.BoundedSemaphore) -> Tested:
    if not places.acquire(timeout=PATIENCE_S):
        message = f"{AT_ONCE} test runs are already running"
        raise Unavailable(Problem(code="busy", message=message, hint="try again in a moment"))
    try:
        return _tested(worker, request)
    finally:
        places.release()


def _tested(worker: Worker, request: TestRequest) -> Tested:
    settings, registry = worker.settings, worker.registry

    def lookup(kind: str, name: str) -> Mapping[str, Any] | None:
        record = registry.find(kind, name)
        return record.document if record else None

    defaults, policy = settings.defaults.model_dump(), Policy.of(settings)
    bench = Bench(worker.spark, lookup, registry.ids, defaults, settings.allow_python, policy)
    seconds = settings.questions.deadline_ms / 1000
    until = time.monotonic() + seconds
    if request.cases is not None:
        cases = [
            _in_time(bench, request, case, until, settings)
            for case in cases_of(request.document, request.cases)
        ]
        return Tested(ok=all(case.passed for case in cases), cases=cases)
    samples = (
        Text(request.text.encode(), request.content_type)
        if request.text is not None
        else request.events or []
    )
    with limited(worker.spark, seconds, "test") as over:
        trial = try_out(bench, request.document, samples, request.given)
    if over.is_set():
        raise _too_long(settings)
    return Tested(**dict(trial.result))


def _in_time(bench: Bench, request: TestRequest, case: Any, until: float, settings: Settings) -> CaseResult:
    with limited(bench.spark, max(0.0, until - time.monotonic()), "test") as over:
        result = run_case(bench, request.document, case)
    if over.is_set():
        return result.model_copy(update={"passed": False, "errors": _too_long(settings).problems})
    return result


def _too_long(settings: Settings) -> TookTooLong:
    seconds = settings.questions.deadline_ms / 1000
    message = f"the test run was stopped after {seconds:g} s"
    hint = "use fewer events, or run fewer tests at once; questions.deadline_ms allows more time"
    return TookTooLong(Problem(code="test_timeout", message=message, hint=hint))
