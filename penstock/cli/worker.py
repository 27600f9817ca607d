"""`penstock worker`: one worker process."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Home, load_settings, settled
from penstock.cli.output import FAILED, OK, Usage, exit_code, show_problems
from penstock.cli.signals import Leash, on_parent_end, on_stop
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock.control.fleet.control import Control
    from penstock.control.fleet.worker import Worker
    from penstock.control.questions.limits import Limits
    from penstock.control.registry.store import Registry
    from penstock.settings import Settings
    from penstock.spark.heartbeat import Ailment


QUESTIONS_NICE = 5
"""The nice increment of a process for questions, which lowers its priority."""

IDLE_LOOK_S = 0.5


def worker(
    home: Home = None,
    leash: Leash = False,
    phase_file: Annotated[
        Path | None,
        typer.Option("--phase-file", help="File for the current start-up phase.", show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Label of the worker, KEY=VALUE; may be repeated.", show_default=False),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option("--capacity", help="Maximum number of flows.", show_default=False)
    ] = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Take flows only when another worker is lost.")
    ] = False,
    questions: Annotated[
        bool,
        typer.Option(
            "--questions", help="Take no flows: answer test runs, queries, validation and checks only."
        ),
    ] = False,
    worker_id: Annotated[
        str | None,
        typer.Option(
            "--id", help="Id to register under; must be unique. By default a new UUID.", show_default=False
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            help="URL of a server on another machine, instead of the registry in the settings.",
            show_default=False,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="PENSTOCK_WORKER_TOKEN",
            help="With --server: a token created by `penstock worker token`.",
            show_default=False,
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", help="With --server: certificates to trust, as PEM.", show_default=False),
    ] = None,
) -> None:
    """Run a worker for the registry in the settings."""
    from penstock.cli.descriptors import allow_many_files
    from penstock.cli.sessions import spark_session
    from penstock.spark.archive import ClassArchive
    from penstock.spark.java import require_java

    if standby and questions:
        message = "--standby is for a worker that takes flows, and --questions for one that takes none"
        raise Usage(Problem(code="conflicting_options", message=message))
    gc.disable()  # imported modules are never garbage: collecting among them delays the start
    labels = dict(_label(each) for each in label) if label else None
    settings = settled(load_settings(home=home, worker__labels=labels, worker__capacity=capacity))
    far = _far(settings, server, token, ca_file)
    require_java()
    allow_many_files()  # before the JVM starts, which inherits the limit
    stop = _Stop()
    if leash:
        on_parent_end(stop.ask)
        _guard(settings)
    session = settings
    if questions:
        from penstock.engine.runtime.question_session import question_session

        session = question_session(settings)
        with contextlib.suppress(OSError):
            os.nice(QUESTIONS_NICE)  # flows take precedence when cores are busy
    import pyspark.sql  # noqa: F401 (two threads must not be the first to import its modules)

    rest = _Rest(settings, far)
    rest.start()
    code = OK
    with spark_session(session, warm=not questions) as spark:
        _write_phase(phase_file, "connecting")
        control = rest.result()
        from penstock.control.fleet.progress import stored_home_id
        from penstock.control.fleet.worker import Worker
        from penstock.engine.runtime.storage import require_storage

        require_storage(spark, session)
        if control.home and (shared := stored_home_id(settings, spark)) is not None:
            control = replace(control, home=shared)

        if standby:
            _warm_up(spark)  # before it registers: a cold standby saves little time
        elif questions:
            _warm_up_questions(spark)  # before the worker registers: a question has a deadline
        else:
            threading.Thread(target=_warm_up, args=(spark,), name="warm up", daemon=True).start()
        if (archive := ClassArchive.of(settings)) is not None:
            archive.make_when_idle()
        worker = Worker(settings, control, spark, standby=standby, questions=questions, worker_id=worker_id)
        _watch_over(worker, leash)
        on_stop(stop.ask)
        stop.reaches(worker)
        gc.freeze()  # otherwise an occasional collection would delay a micro-batch
        gc.enable()
        try:
            worker.run()
        except PenstockError as error:
            show_problems(error.problems)
            code = exit_code(error)
        except Exception as error:
            _complain(error)
            code = FAILED
    rest.close()
    sys.stdout.flush()
    sys.stderr.flush()
    # Exit even if a thread of Spark or of a connector still hangs: all flows have stopped.
    os._exit(code)


def _far(
    settings: Settings, server: str | None, token: str | None, ca_file: Path | None
) -> tuple[str, str, Path | None] | None:
    """The server of a worker on another machine; None for a worker that uses the registry directly."""
    if server is None:
        return None
    if not token:
        hint = "create one on the server with `penstock worker token`"
        raise Usage(Problem(code="no_token", message="--server needs a --token", hint=hint))
    if ca_file is not None and not ca_file.is_file():
        raise Usage(Problem(code="no_file", message=f"there is no file {ca_file}", path="--ca-file"))
    return server, token, ca_file


def _label(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not key or not equals:
        message = f"a label must be KEY=VALUE, not '{given}'"
        raise Usage(Problem(code="invalid_label", message=message, hint="--label zone=a"))
    return key, value


def _guard(settings: Settings) -> None:
    """Start a guard process that kills the processes this one leaves behind, in whatever way it ends."""
    from penstock.spark.guard import start_guard

    if os.getsid(0) == os.getpid():  # otherwise the session has processes of others too
        start_guard(settings.worker.drain_ms / 1000)


def _watch_over(worker: Worker, leash: bool) -> None:
    """Exit the worker when its JVM makes no progress; one for questions also when it exceeds its limits."""
    from penstock.control.fleet.giving_up import give_up
    from penstock.spark.heartbeat import SENTENCES, Heartbeat

    stuck: Callable[[Ailment], object] = lambda ailment: give_up(worker, SENTENCES[ailment])  # noqa: E731
    if worker.questions:
        from penstock.control.questions.limits import Limits
        from penstock.control.questions.rpc import BY_SPARK

        about = worker.settings.questions
        limits = Limits(BY_SPARK, about, worker.spark, worker.leave, lambda reason: give_up(worker, reason))
        limits.start()
        worker.limited, stuck = limits.around, limits.stuck
        if leash:  # without a server there is no process to restart it
            _end_when_idle(worker, limits, about.idle_ms / 1000)
    heartbeat = Heartbeat(worker.spark, worker.settings.worker.stuck_ms / 1000, stuck)
    worker.ailment = lambda: SENTENCES[found] if (found := heartbeat.ailment()) else None
    heartbeat.start()


def _end_when_idle(worker: Worker, limits: Limits, idle_s: float) -> None:
    def watch() -> None:
        while limits.idle_s < idle_s:
            time.sleep(IDLE_LOOK_S)
        worker.stop()

    threading.Thread(target=watch, name="idle", daemon=True).start()


class _Rest(threading.Thread):
    """Loads everything that a worker needs besides Spark, and opens its registry, while the JVM starts."""

    def __init__(self, settings: Settings, far: tuple[str, str, Path | None] | None) -> None:
        super().__init__(name="load", daemon=True)
        self._settings, self._far = settings, far
        self._control: Control | None = None
        self.close: Callable[[], None] = lambda: None
        self._error: Exception | None = None

    def run(self) -> None:
        """Load everything. If the registry can't be opened, the process exits: Spark would be of no use."""
        from penstock.cli.logs import configure

        try:
            configure(self._settings.log)
            self._control = self._open()
            import penstock.control.fleet.worker  # noqa: F401
        except PenstockError as error:
            show_problems(error.problems)
            sys.stderr.flush()
            os._exit(exit_code(error))
        except Exception as error:
            self._error = error

    def _open(self) -> Control:
        if self._far is None:
            from penstock.control.fleet.control import database_control

            registry = open_registry(self._settings)
            self.close = registry.close
            return database_control(self._settings, registry)
        from penstock.control.wire.client import ANSWER_S, Wire, wire_control

        url, token, ca_file = self._far
        wire = Wire(url, token, min(ANSWER_S, self._settings.worker.lease_ms / 2000), ca_file)
        self.close = wire.close
        return wire_control(self._settings, wire)

    def result(self) -> Control:
        """The control plane, once everything is loaded."""
        self.join()
        if self._error is not None:
            raise self._error
        assert self._control is not None
        return self._control


def _warm_up(spark: SparkSession) -> None:
    """Run a small flow, so that the worker's flows start faster."""
    import structlog

    from penstock.engine.runtime.warmup import warm_up

    try:
        with tempfile.TemporaryDirectory(prefix="penstock-warm-up-") as directory:
            warm_up(spark, Path(directory))
    except Exception as error:  # the first flow will be slower, or the worker is stopping
        structlog.get_logger().warning("warm-up failed", error=str(error))


def _warm_up_questions(spark: SparkSession) -> None:
    """Perform a small test run, so that the first question is not much slower than later ones."""
    from penstock.engine.trials.warm_up import warm_up

    warm_up(spark)


def _write_phase(file: Path | None, phase: str) -> None:
    if file is not None:
        with contextlib.suppress(OSError):  # only the displayed start-up phase is less precise
            written = file.with_suffix(".new")
            written.write_text(phase, encoding="utf-8")
            written.replace(file)


class _Stop:
    """A request to stop, which may arrive before the worker exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def ask(self) -> None:
        with self._lock:
            if self._worker is None:
                os._exit(OK)  # nothing has been started yet
            self._worker.stop()

    def reaches(self, worker: Worker) -> None:
        with self._lock:
            self._worker = worker


def open_registry(settings: Settings) -> Registry:
    """The registry of the settings; Unavailable with the reason if it can't be opened."""
    import sqlite3

    from sqlalchemy.exc import SQLAlchemyError

    from penstock.control.monitor.installation import masked
    from penstock.control.registry.faults import registry_problem
    from penstock.control.registry.store import Registry
    from penstock.errors import Unavailable

    try:
        return Registry.open(settings.registry_url)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        if (problem := registry_problem(error)) is None:
            why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            url = masked("url", settings.registry_url)
            message = f"can't open the registry {url}: {why}"
            problem = Problem(code="registry_down", message=message, path="registry.url")
        raise Unavailable(problem) from None


def _complain(error: Exception) -> None:
    import structlog

    structlog.get_logger().error("worker failed", exc_info=error)
    show_problems([Problem(code="worker_failed", message=f"{type(error).__name__}: {error}")])
