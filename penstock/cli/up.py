"""`penstock up`: server, coordinator and workers in one go."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import __version__
from penstock.cli.options import Home, load_settings, settled
from penstock.cli.output import note, say, show_problems
from penstock.cli.signals import on_stop
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from penstock.control.processes import WorkerProcesses
    from penstock.control.service import Service
    from penstock.settings import Loaded

POLL_S = 0.2
LONG_START_S = 60.0
"""A worker that is not ready by then is worth a look at its log."""


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default=False)
    ] = None,
    home: Home = None,
    workers: Annotated[int | None, typer.Option(help="Workers to start here.", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Add pipelines to look at and play with.")] = False,
) -> None:
    """Start Penstock: the server, the coordinator and the workers. Ctrl-C ends it in order."""
    from penstock.cli.descriptors import allow_many_files
    from penstock.cli.lock import Lock
    from penstock.cli.logs import configure
    from penstock.spark.java import require_java

    loaded = load_settings(host=host, port=port, home=home, workers=workers)
    settings = settled(loaded)
    configure(settings.log)
    allow_many_files()
    if settings.workers:
        require_java()  # or each worker would say so, again and again, where nobody looks
    with Lock(settings.home / "up.lock", f"the directory {settings.home}") as lock:
        _serve(loaded, lock, ["--home", str(settings.home)] if home else [], demo)


def _serve(loaded: Loaded, lock: Any, arguments: list[str], demo: bool) -> None:
    from penstock.api.app import create_app
    from penstock.api.server import Server
    from penstock.api.ui import BUILT
    from penstock.cli.worker import open_registry
    from penstock.control.processes import WorkerProcesses
    from penstock.control.service import Service

    settings = loaded.settings
    registry = open_registry(settings)
    service = Service(loaded, registry)
    service.streams.start()
    stop = threading.Event()
    # The server runs in a thread, so that signals come here: its own end is but the first of three.
    server = Server(create_app(service), settings)
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    lock.tell(f"a running `penstock up` at {server.url}")
    on_stop(stop.set)
    thread.start()
    say(("Penstock ", "bold"), f"{__version__} listens on ", (server.url, "bold cyan"))
    if (BUILT / "index.html").exists():
        say("open ", (f"{server.url}/ui/", "bold cyan"), " in a browser")
    else:
        note("the web app is not built; `make web` builds it")
    service.coordinator.start()
    processes = WorkerProcesses(settings, service.flows, arguments)
    processes.start()
    greeter = threading.Thread(
        target=_greet, args=(service, processes, stop, demo), name="greeter", daemon=True
    )
    greeter.start()
    while not stop.wait(POLL_S) and thread.is_alive():
        pass
    crashed = not stop.is_set()
    note("stopping: running batches are finished first; Ctrl-C again ends at once")
    stop.set()
    server.stop()
    thread.join()
    service.coordinator.stop()
    processes.stop()
    service.streams.stop()
    registry.close()
    if crashed:
        raise PenstockError(Problem(code="server_failed", message="the server has ended; see the log above"))
    say("stopped")


def _greet(service: Service, processes: WorkerProcesses, stop: threading.Event, demo: bool) -> None:
    """Tell when pipelines can run, and add the demo then."""
    settings = service.settings
    if settings.workers:
        log = processes.log_path(1)
        say(f"starting Spark… (its log is {log})")
    else:
        log = None
        say("no worker is started here; `penstock worker` starts one")
    began = time.monotonic()
    warned = False
    while not stop.wait(POLL_S):
        if any(worker.alive and worker.state == "ready" for worker in service.workers()):
            say(f"a worker is ready after {time.monotonic() - began:.0f} s: pipelines can run")
            if demo:
                _add_demo(service)
            return
        if log and not warned and time.monotonic() - began > LONG_START_S:
            warned = True
            note(f"no worker is ready yet; {log} may say why")


def _add_demo(service: Service) -> None:
    from penstock.demo import prepare

    added = 0
    for raw in prepare(service.settings.home):
        kind, name = raw["kind"], raw["metadata"]["name"]
        if service.registry.find(kind, name) is not None:
            continue
        try:
            service.create(kind, raw)
        except PenstockError as error:
            note(f"{kind.lower()} '{name}' of the demo cannot be added:")
            show_problems(error.problems, indent="  ")
        else:
            added += 1
    say(f"the demo has {added} new documents" if added else "the demo is there already")
