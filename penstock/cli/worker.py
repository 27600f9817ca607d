"""`penstock worker`: one worker process."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Home, load_settings, settled
from penstock.cli.output import FAILED, OK, exit_code, show_problems
from penstock.cli.signals import on_stop
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.control.fleet.worker import Worker
    from penstock.control.registry.store import Registry
    from penstock.settings import Settings


def worker(
    home: Home = None,
    leash: Annotated[
        bool, typer.Option("--leash", help="End when standard input closes, as it does when the parent dies.")
    ] = False,
    phase_file: Annotated[
        Path | None,
        typer.Option("--phase-file", help="File to write the phase of the start to.", show_default=False),
    ] = None,
) -> None:
    """Run a worker that takes pipelines from the registry of the settings."""
    from penstock.cli.descriptors import allow_many_files
    from penstock.cli.sessions import spark_session
    from penstock.spark.archive import ClassArchive
    from penstock.spark.java import require_java

    settings = settled(load_settings(home=home))
    require_java()
    allow_many_files()  # before the JVM starts, which inherits it
    stop = _Stop()
    if leash:
        threading.Thread(target=_watch, args=(stop,), name="leash", daemon=True).start()
    import pyspark.sql  # noqa: F401 (two threads must not be the first to import its modules)

    rest = _Rest(settings)
    rest.start()
    code = OK
    with spark_session(settings, warm=True) as spark:
        _write_phase(phase_file, "connecting")
        registry = rest.result()
        from penstock.control.fleet.worker import Worker

        threading.Thread(target=_warm_up, args=(spark,), name="warm up", daemon=True).start()
        if (archive := ClassArchive.of(settings)) is not None:
            archive.make_when_idle()
        worker = Worker(settings, registry, spark)
        on_stop(stop.ask)
        stop.reaches(worker)
        try:
            worker.run()
        except Exception as error:
            _complain(error)
            code = FAILED
    registry.close()
    sys.stdout.flush()
    sys.stderr.flush()
    # Whatever thread of Spark or of a connector still hangs: the flows are at rest, the process ends.
    os._exit(code)


class _Rest(threading.Thread):
    """Loads all that a worker needs besides Spark, and opens its registry, while the JVM starts."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(name="load", daemon=True)
        self._settings = settings
        self._registry: Registry | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Load it. A registry that cannot be opened ends the process: there is no use in a Spark then."""
        from penstock.cli.logs import configure

        try:
            configure(self._settings.log)
            self._registry = open_registry(self._settings)
            import penstock.control.fleet.worker  # noqa: F401
        except PenstockError as error:
            show_problems(error.problems)
            sys.stderr.flush()
            os._exit(exit_code(error))
        except Exception as error:
            self._error = error

    def result(self) -> Registry:
        """The registry, once everything is loaded."""
        self.join()
        if self._error is not None:
            raise self._error
        assert self._registry is not None
        return self._registry


def _warm_up(spark: SparkSession) -> None:
    """Run a small flow beside the first ones of the worker, so that none of them is slow to start."""
    import structlog

    from penstock.engine.runtime.warmup import warm_up

    try:
        with tempfile.TemporaryDirectory(prefix="penstock-warm-up-") as directory:
            warm_up(spark, Path(directory))
    except Exception as error:  # the first flow is slower then, or the worker is stopping
        structlog.get_logger().warning("warm-up failed", error=str(error))


def _write_phase(file: Path | None, phase: str) -> None:
    if file is not None:
        with contextlib.suppress(OSError):  # only the page that shows the start is less precise then
            written = file.with_suffix(".new")
            written.write_text(phase, encoding="utf-8")
            written.replace(file)


class _Stop:
    """A request to end, which may come before the worker exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def ask(self) -> None:
        with self._lock:
            if self._worker is None:
                os._exit(OK)  # nothing has been begun
            self._worker.stop()

    def reaches(self, worker: Worker) -> None:
        with self._lock:
            self._worker = worker


def _watch(stop: _Stop) -> None:
    while sys.stdin.buffer.read(1024):
        pass
    stop.ask()


def open_registry(settings: Settings) -> Registry:
    """The registry of the settings, or why it cannot be opened."""
    from sqlalchemy.exc import SQLAlchemyError

    from penstock.control.monitor.installation import masked
    from penstock.control.registry.store import Registry
    from penstock.errors import Problem, Unavailable

    try:
        return Registry.open(settings.registry_url)
    except (SQLAlchemyError, OSError) as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        url = masked("url", settings.registry_url)
        raise Unavailable(
            Problem(
                code="registry_down",
                message=f"the registry {url} cannot be opened: {why}",
                path="registry.url",
            )
        ) from None


def _complain(error: Exception) -> None:
    import structlog

    from penstock.errors import Problem

    structlog.get_logger().error("worker failed", exc_info=error)
    show_problems([Problem(code="worker_failed", message=f"{type(error).__name__}: {error}")])
