"""Failures of a running query: message, place in the document, and whether a retry can help."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from penstock.connectors.base import Sink, Source
from penstock.engine.plan.flow import Part
from penstock.errors import Fatal, Invalid, PenstockError, Problem, Suspended
from penstock.frames.faults import Fault, fault_in
from penstock.spark.driver import error_text

FATAL_STATES = ("22", "42", "0A")
"""SQLSTATE classes of errors that recur on every attempt: bad data, bad SQL, unsupported features."""

WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
"""Error conditions that only wrap another error."""

TIMEOUT, FACTORY = "java.net.SocketTimeoutException", "org.apache.spark.api.python.PythonWorkerFactory"
"""The exception, and its class of origin, when a Python process exceeds Spark's ten seconds."""

FRAMES = 8
"""The number of stack frames that are searched."""

BYPASS = re.compile(r"\s*If necessary set \"spark\.[\w.]+\" to \"\w+\"[^.]* to bypass this error\.")
"""Advice of Spark that does not apply here: the setting would change the results of all flows of a worker."""

LONGEST = 600
"""The maximum length of a message; longer messages are truncated, and the log has the rest."""


@dataclass(frozen=True)
class Failure:
    """The failure of a run."""

    problem: Problem
    fatal: bool
    passing: bool = False
    """Whether the failure is a transient one of the machine, and not caused by the flow."""


class SinkFailed(Exception):
    """A batch that cannot be committed because of one sink."""

    def __init__(self, sink: Part[Sink], error: Exception) -> None:
        super().__init__(str(error))
        self.sink, self.error = sink, error


class RunFailed(Exception):
    """Ends a run with a failure whose cause is known."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.problem.message)
        self.failure = failure


def failure_of(error: BaseException) -> Failure:
    """The failure behind an exception from Spark, a connector or a document."""
    if isinstance(error, RunFailed):
        return error.failure
    if isinstance(error, SinkFailed):
        return sink_failure(error.sink, error.error)
    if isinstance(error, Invalid):
        first, more = error.problems[0], len(error.problems) - 1
        hint = f"{first.hint or ''} (and {more} more)".strip() if more else first.hint
        return Failure(first.model_copy(update={"hint": hint}), fatal=True)
    if isinstance(error, PenstockError):
        return Failure(error.problems[0], fatal=False)
    if isinstance(error, Suspended):
        problem = Problem(
            code="suspended",
            message=str(error),
            hint="the flow continues automatically once this is resolved",
        )
        return Failure(problem, fatal=False, passing=True)
    if isinstance(error, Fault):
        return Failure(error.problem, fatal=True)
    if (origin := getattr(error, "_origin", None)) is not None:
        return java_failure(origin, str(error))
    if (java := getattr(error, "java_exception", None)) is not None:
        return java_failure(java, str(error))
    text = _short(str(error)) or type(error).__name__
    code = "fatal" if isinstance(error, Fatal) else "failed"
    return Failure(Problem(code=code, message=text), fatal=isinstance(error, Fatal))


def sink_failure(sink: Part[Sink], error: Exception) -> Failure:
    """The failure of a sink, with the name of the sink and its place in the document."""
    failure = failure_of(error)
    if failure.passing:  # a failure of the machine, not of the sink
        return failure
    place, problem = sink.place, failure.problem
    if place.via is None:
        problem = problem.model_copy(update={"message": f"sink '{sink.id}': {problem.message}"})
    return replace(failure, problem=place.locate(problem))


def source_failure(source: Part[Source], error: Any) -> Failure:
    """The failure behind an exception, or a Java exception, of a query; the source may explain it better."""
    known = source.component.explained(error_text(error))
    if known is None:
        return failure_of(error) if isinstance(error, BaseException) else java_failure(error)
    return failure_of(type(known)(*map(source.place.locate, known.problems)))


def java_failure(throwable: Any, text: str = "") -> Failure:
    """The failure behind a Java exception: the deepest cause that Spark has a name for.

    A fault raised in a Python process of Spark is returned as that fault.
    """
    best, last = None, throwable
    seen = 0
    while throwable is not None and seen < 50:
        last = throwable
        if (fault := fault_in(_ask(throwable, "getMessage") or "")) is not None:
            return Failure(fault, fatal=True)
        if _is_starved(throwable):
            return _starved()
        if _ask(throwable, "getCondition") not in (None, *WRAPPERS):
            best = throwable
        throwable, seen = throwable.getCause(), seen + 1
    told = best if best is not None else last
    condition, state = _ask(told, "getCondition"), _ask(told, "getSqlState") or ""
    message = _short(_ask(told, "getMessage") or text or "the query failed")
    if best is None:
        name = str(told.getClass().getSimpleName())
        return Failure(Problem(code="failed", message=f"{name}: {message}"), fatal=False)
    problem = Problem(code=str(condition).lower(), message=message)
    return Failure(problem, fatal=state.startswith(FATAL_STATES))


def _is_starved(throwable: Any) -> bool:
    """Whether a Python process did not connect in time; for a failed task only the text may be available."""
    text = _ask(throwable, "getMessage") or ""
    if TIMEOUT in text and FACTORY in text:
        return True
    if str(throwable.getClass().getName()) != TIMEOUT:
        return False
    return any(str(frame.getClassName()).startswith(FACTORY) for frame in throwable.getStackTrace()[:FRAMES])


def _starved() -> Failure:
    problem = Problem(
        code="starved",
        message="the machine was too busy to start a Python process within ten seconds",
        hint="give the workers more processor time, or fewer flows",
    )
    return Failure(problem, fatal=False, passing=True)


def _ask(throwable: Any, method: str) -> str | None:
    try:
        answer = getattr(throwable, method)()
    except Exception:  # not every Java exception has the method
        return None
    return None if answer is None else str(answer)


def _short(text: str) -> str:
    """The sentences of a message, without its code, its SQLSTATE and its stack."""
    text = text.split("\n\tat ")[0].split("\n== ")[0].split("JVM stacktrace")[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text.strip())
    text = BYPASS.sub("", re.sub(r"\s*SQLSTATE: \w+", "", text))
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
