"""`penstock worker`: one worker process."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Home, load_settings, settled
from penstock.cli.output import FAILED, OK, show_problems
from penstock.cli.signals import on_stop

if TYPE_CHECKING:
    from penstock.control.registry.store import Registry
    from penstock.control.worker import Worker
    from penstock.settings import Settings


def worker(
    home: Home = None,
    leash: Annotated[
        bool, typer.Option("--leash", help="End when standard input closes, as it does when the parent dies.")
    ] = False,
) -> None:
    """Run a worker that takes pipelines from the registry of the settings."""
    from penstock.cli.descriptors import allow_many_files
    from penstock.cli.logs import configure
    from penstock.cli.sessions import spark_session
    from penstock.control.worker import Worker

    settings = settled(load_settings(home=home))
    configure(settings.log)
    allow_many_files()
    stop = _Stop()
    if leash:
        threading.Thread(target=_watch, args=(stop,), name="leash", daemon=True).start()
    registry = open_registry(settings)
    code = OK
    with spark_session(settings) as spark:
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


class _Stop:
    """The wish to end, which may come before there is a worker to tell."""

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

    from penstock.control.installation import masked
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
