"""`penstock up`: starts the server, the coordinator and the workers."""

from __future__ import annotations

import gc
import textwrap
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import __version__
from penstock.cli.options import Home, load_settings, settled
from penstock.cli.output import note, say, show_problems
from penstock.cli.signals import Leash, on_parent_end, on_stop
from penstock.cli.text import plural
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.cli.lock import Lock
    from penstock.control.documents.service import Service
    from penstock.control.fleet.processes import WorkerProcesses
    from penstock.control.fleet.question_process import QuestionProcess
    from penstock.settings import Loaded, Settings

BEGAN = time.monotonic()
"""Approximately when this command started."""

POLL_S = 0.2
LONG_START_S = 60.0
"""Seconds after which the user is referred to the log of a worker that is not ready."""


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 chooses a free port.", show_default=False)
    ] = None,
    home: Home = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of workers to start.", show_default=False)
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Add demo pipelines.")] = False,
    leash: Leash = False,
) -> None:
    """Start Penstock: the server, the coordinator and the workers. Ctrl-C shuts it down cleanly."""
    from penstock.cli.descriptors import allow_many_files
    from penstock.cli.lock import Lock
    from penstock.cli.logs import configure
    from penstock.disk import require_home
    from penstock.spark.java import require_java

    loaded = load_settings(host=host, port=port, home=home, workers=workers)
    settings = settled(loaded)
    configure(settings.log)
    allow_many_files()
    require_home(settings.home)
    if settings.workers:
        require_java()  # otherwise each worker would report it repeatedly, only in its log
    gc.disable()  # imported modules are never garbage: collecting among them delays the start
    try:
        with Lock(settings.home / "up.lock", f"the directory {settings.home}") as lock:
            _serve(loaded, lock, ["--home", str(settings.home)] if home else [], demo, leash)
    finally:
        gc.enable()


def _serve(loaded: Loaded, lock: Lock, arguments: list[str], demo: bool, leash: bool) -> None:
    from penstock.api.listening import listen
    from penstock.control.fleet.processes import WorkerProcesses
    from penstock.control.fleet.question_process import QuestionProcess

    settings = loaded.settings
    _require_authentication(settings)
    listener = listen(settings.host, settings.port)
    stop = threading.Event()
    on_stop(stop.set)
    if leash:
        on_parent_end(stop.set)
    processes = WorkerProcesses(settings, arguments)
    processes.start()  # first, so that everything else loads while Spark starts
    questions = (
        QuestionProcess(settings, arguments) if settings.questions.process and settings.workers else None
    )

    from penstock.api.entrance import Entrance
    from penstock.api.server import Server

    entrance = Entrance()
    server = Server(entrance, settings, listener=listener)
    # The server runs in a thread, so that signals are handled here: its end is only the first of three steps.
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    lock.tell(f"a running `penstock up` at {server.url}")
    _announce(server.url, processes)
    service: Service | None = None
    try:
        service = _load(loaded, processes, questions, demo)
        app = _app(service)
        entrance.open(app)
        _invite(app, server.url)
        greeter = threading.Thread(
            target=_greet, args=(service, processes, stop, demo), name="greeter", daemon=True
        )
        greeter.start()
        gc.freeze()
        gc.enable()
        while not stop.wait(POLL_S) and thread.is_alive():
            pass
        crashed = not stop.is_set()
        note("shutting down after the running batches; press Ctrl-C again to stop immediately")
    finally:
        stop.set()
        server.stop()
        thread.join()
        if service is not None:
            service.coordinator.stop()
        if questions is not None:
            questions.stop()
        processes.stop()
        if service is not None:
            service.streams.stop()
            service.registry.close()
    if crashed:
        raise PenstockError(Problem(code="server_failed", message="the server exited; see the log above"))
    say("stopped")


def _require_authentication(settings: Settings) -> None:
    """PenstockError if other machines could access the server while authentication is off."""
    if settings.is_local:
        return
    from penstock.cli.worker import open_registry
    from penstock.control.access.access import require_authentication
    from penstock.control.access.users import Users

    registry = open_registry(settings)
    try:
        require_authentication(settings, Users(registry))
    finally:
        registry.close()


def _invite(app: FastAPI, url: str) -> None:
    """Print the link for the first admin, if users have to log in and there is none yet."""
    access = app.state.access
    if access.on and not access.users.exist():
        secret = access.new_setup_secret()
        say("make the first admin, once and within an hour: ", (f"{url}/ui/setup#{secret}", "bold cyan"))


def _announce(url: str, processes: WorkerProcesses) -> None:
    from penstock.api.web_files import BUILT

    say(("Penstock ", "bold"), f"{__version__} listens on ", (url, "bold cyan"))
    if (BUILT / "index.html").exists():
        say("open ", (f"{url}/ui/", "bold cyan"), " in a browser")
    else:
        note("the web app is not built; `make web` builds it")
    if processes.settings.workers:
        say(f"starting Spark… (log: {processes.log_path(1)})")
    else:
        say("no worker started; run `penstock worker` to start one")


def _load(
    loaded: Loaded, processes: WorkerProcesses, questions: QuestionProcess | None, demo: bool
) -> Service:
    """The service, with all of its parts running."""
    from penstock.cli.worker import open_registry
    from penstock.control.documents.service import Service
    from penstock.control.fleet.server_start import take_up

    registry = open_registry(loaded.settings)
    service = Service(loaded, registry, processes, questions)
    take_up(service)
    if demo:
        _add_demo(service)
    service.coordinator.start()
    processes.on_gone = service.coordinator.poke
    processes.flows = service.flows
    if questions is not None:
        questions.flows = service.flows
        questions.start()
    return service


def _app(service: Service) -> FastAPI:
    from penstock.api.app import create_app

    return create_app(service)


def _greet(service: Service, processes: WorkerProcesses, stop: threading.Event, demo: bool) -> None:
    """Print the start-up progress of the workers, until pipelines can run."""
    began = time.monotonic()
    failures: dict[int, str] = {}
    warned = False
    while not stop.wait(POLL_S):
        if any(worker.takes_flows for worker in service.workers()):
            say(f"worker ready after {time.monotonic() - BEGAN:.0f} s: pipelines can run")
            if demo:
                _check_demo(service)
            return
        for start in processes.starts():
            if start.error and failures.get(start.worker) != start.error:
                failures[start.worker] = start.error
                note(f"worker {start.worker} failed to start and is being restarted; log: {start.log}:")
                note(textwrap.indent(start.error, "  "))
        if processes.settings.workers and not warned and time.monotonic() - began > LONG_START_S:
            warned = True
            note(f"no worker is ready yet; check {processes.log_path(1)}")


def _add_demo(service: Service) -> None:
    """Add the missing documents of the demo, all at once and without waiting for a worker."""
    from penstock.demo import prepare

    try:
        added = service.add_missing(prepare(service.settings.home))
    except PenstockError as error:
        note("could not add the demo:")
        show_problems(error.problems, indent="  ")
    else:
        say(f"demo: added {plural(len(added), 'document')}" if added else "demo: already present")


def _check_demo(service: Service) -> None:
    """Let a worker validate the pipeline of the demo that is broken on purpose, to show its errors."""
    from penstock.demo import BROKEN

    try:
        service.check_resting("Pipeline", BROKEN)
    except PenstockError as error:
        show_problems(error.problems, level="warning")
