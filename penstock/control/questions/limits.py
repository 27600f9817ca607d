"""The limits of a process that answers questions: each has a deadline, and all share a limit on memory.

User code may run forever inside a task, or fill the memory of the JVM, and the process can't recover from
either. So the question is answered with an error, the process exits, and another one replaces it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import Problem
from penstock.settings.model import QuestionSettings
from penstock.spark.driver import exit_code, has_ended, runs_tasks
from penstock.spark.heartbeat import Ailment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE = "x-deadline"
"""The header with the deadline of a question in seconds, if it differs from the settings."""

GRACE_S = 5.0
"""Seconds beyond its timeout in which a question can still be canceled without ending the process."""

SENDING_S, LAST_S = 0.5, 5.0
"""Seconds for sending the last answers of a process, and until it exits in any case."""

MEMORY_S, LOOK_S = 0.5, 0.5
"""Seconds between checks of the memory, and of tasks that outlive their question."""

LEFT_S = 10.0
"""Seconds that tasks of a canceled question may continue before the process exits."""

OUT_OF_MEMORY = {3, 52}
"""Exit codes of a JVM that has run out of memory: the JVM's own, and Spark's."""

MIB = 1024 * 1024


class Refusal(BaseModel):
    """The reasons why a question is not answered."""

    problems: list[Problem]


class Limits:
    """Enforces the limits on questions at the given paths.

    `leave` keeps the server from sending further questions, and `end` ends the process.
    """

    def __init__(
        self,
        paths: set[str],
        settings: QuestionSettings,
        spark: SparkSession,
        leave: Callable[[], object],
        end: Callable[[str], object],
    ) -> None:
        self._paths, self._settings, self._spark = paths, settings, spark
        self._leave, self._end = leave, end
        self._running: set[asyncio.Future[Problem]] = set()
        """For each question in progress, a future with the reason if it can't be answered."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = time.monotonic()
        self._ending = False

    def start(self) -> None:
        """Start monitoring the memory."""
        threading.Thread(target=self._watch_memory, name="memory", daemon=True).start()

    @property
    def idle_s(self) -> float:
        """Seconds since the last question; 0 while one is being answered."""
        return 0.0 if self._running else time.monotonic() - self._last

    def stuck(self, ailment: Ailment) -> None:
        """End all questions and the process, because the JVM makes no progress."""
        self._fail(self._out_of_memory() if ailment == "garbage" else _stuck())

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app wrapped with limits."""

        async def limited(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] in self._paths:
                await self._question(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return limited

    async def _question(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        if self._ending:
            await _refused(_interrupted())(scope, receive, send)
            return
        failed: asyncio.Future[Problem] = self._loop.create_future()
        self._running.add(failed)
        try:
            await self._answer(app, scope, receive, send, failed)
        finally:
            self._running.discard(failed)
            self._last = time.monotonic()
            if not self._running:
                self._loop.create_task(self._require_rest())

    async def _answer(
        self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, failed: asyncio.Future[Problem]
    ) -> None:
        made: list[Message] = []

        async def keep(message: Message) -> None:
            made.append(message)

        seconds = self._seconds(scope)

        async def whole() -> None:
            await app(scope, receive, keep)

        answer = asyncio.ensure_future(whole())
        both: set[asyncio.Future[Any]] = {answer, failed}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            problem: Problem | None = failed.result()
        elif not answer.done():
            problem = _too_late(seconds)
        else:
            problem = await run_in_threadpool(self._of_ended_jvm)
        if problem is None:
            answer.result()
            for message in made:
                await send(message)
            return
        answer.cancel()
        if not self._ending:
            self._ending = True  # new questions are rejected, others interrupted
            await run_in_threadpool(self._leave)
            for each in self._running:
                if not each.done():
                    each.set_result(_interrupted())
            threading.Timer(SENDING_S, self._end, [problem.message]).start()
        await _refused(problem)(scope, receive, send)

    def _seconds(self, scope: Scope) -> float:
        given = dict(scope["headers"]).get(DEADLINE.encode())
        return (float(given) if given else self._settings.deadline_ms / 1000) + GRACE_S

    def _of_ended_jvm(self) -> Problem | None:
        if not has_ended(self._spark):
            return None
        if exit_code(self._spark) in OUT_OF_MEMORY:
            return self._out_of_memory()
        message = "the JVM of the process that answers questions has ended"
        return Problem(code="jvm_ended", message=message, hint="try again in a moment; its log may say why")

    def _out_of_memory(self) -> Problem:
        limit = self._settings.memory_mb
        return Problem(
            code="out_of_memory",
            message=f"it needs more memory than the {limit:,} MiB that questions have",
            hint="let it read or make less, or raise questions.memory_mb; no flow was affected",
        )

    def _fail(self, problem: Problem) -> None:
        """Answer all questions with a problem, then end the process. May be called by any thread."""
        if self._loop is None or not self._running:
            self._end(problem.message)
            return

        def fail() -> None:
            for each in self._running:
                if not each.done():
                    each.set_result(problem)

        self._loop.call_soon_threadsafe(fail)
        time.sleep(LAST_S)
        self._end(problem.message)  # in case the event loop makes no progress either

    async def _require_rest(self) -> None:
        """End the process if tasks keep running without a question in progress: they can't be canceled."""
        until = time.monotonic() + LEFT_S
        with contextlib.suppress(Exception):  # the JVM has ended, which is detected elsewhere
            while not self._running and await run_in_threadpool(runs_tasks, self._spark):
                if time.monotonic() > until:
                    self._ending = True
                    await run_in_threadpool(self._leave)
                    self._end("tasks of a question that has ended can't be cancelled")
                await asyncio.sleep(LOOK_S)

    def _watch_memory(self) -> None:
        while True:
            time.sleep(MEMORY_S)
            if self._running and memory_bytes() > self._settings.memory_mb * MIB:
                self._fail(self._out_of_memory())


def _refused(problem: Problem) -> Response:
    status = 408 if problem.code == "deadline_exceeded" else 503
    return Response(Refusal(problems=[problem]).model_dump_json(), status, media_type="application/json")


def memory_bytes() -> int:
    """The memory of this process and its children; shared memory counts once where the system reports it."""
    found = 0
    this = psutil.Process()
    for process in [this, *this.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            full: Any = process.memory_full_info()
            found += getattr(full, "pss", full.rss)
    return found


def _too_late(seconds: float) -> Problem:
    return Problem(
        code="deadline_exceeded",
        message=f"it was not answered within {seconds - GRACE_S:g} s, and could not be cancelled",
        hint="give it fewer events or a simpler expression; questions.deadline_ms, or the timeout of a query,"
        " allows more time; no flow was affected",
    )


def _stuck() -> Problem:
    message = "the process that answers questions did not get on, and was ended"
    return Problem(code="deadline_exceeded", message=message, hint="give it less to do; see its log")


def _interrupted() -> Problem:
    message = "the process that answers questions was ended because of another question"
    return Problem(code="interrupted", message=message, hint="try again in a moment")
