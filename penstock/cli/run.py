"""`penstock run`: one flow in the foreground, without a server or a registry."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.files import STDIN, Found, read_files
from penstock.cli.jars import fetch_missing
from penstock.cli.lock import Lock
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import FAILED, note, show_problems
from penstock.cli.progress import Plain, Summary, view
from penstock.cli.sessions import Starting, starting_spark
from penstock.cli.signals import on_stop

if TYPE_CHECKING:
    from penstock.cli.project import Project
    from penstock.engine.plan.flow import Flow

POLL_S = 0.2
REREAD = "all events are read and delivered again"

SMALL_BYTES = 16 * 1024 * 1024
"""Files below this size are read before a JVM with full optimization would pay off."""


def run(
    file: Annotated[
        str,
        typer.Argument(
            help="File with the document to run and the documents it refers to; `-` reads standard input."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the document to run, if there are several.", show_default=False),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, ignoring the progress of earlier runs.")
    ] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run one pipeline until its input ends or Ctrl-C. The next run continues from there.

    If the file has no pipeline, it can contain a task, or a source or sink with a stream, instead. Streams
    are stored in the home directory, separate from the streams of a server that uses the same directory.

    Progress goes to standard error, so that events of a `stdout` or `console` sink can be piped. With --json
    it goes to standard output instead, one object per line, the last one of type `summary`. A `stdin` source
    reads the events that are piped in; the document must then be in a file.
    """
    settings = settled(load_settings(home=home))
    documents = read_files([file])
    with starting_spark(settings, short=is_short(documents)) as spark:
        # While Spark starts: slow imports, and all checks that need no Spark.
        from penstock.cli.logs import configure
        from penstock.cli.pipes import require_free_pipes
        from penstock.cli.project import choose, require_reachable

        configure(settings.log)  # the output of scripts must not mix with events of a console sink
        project = choose(documents, name, settings)
        require_reachable(project)
        flow = project.resolve()
        require_free_pipes(flow, document_piped=file == STDIN, as_json=json)
        fetch_missing(settings, [flow.source.component, *(sink.component for sink in flow.sinks)])
        with view(as_json=json) as shown:
            summary = _run(project, flow, spark, shown, fresh)
    shown.end(summary)
    if summary.outcome == "failed":
        raise typer.Exit(FAILED)


def is_short(documents: Sequence[Found]) -> bool:
    """Whether a run will take only seconds: it reads one small file to its end."""
    specs = [each.raw.get("spec") for each in documents if isinstance(each.raw, Mapping)]
    sources = [spec["source"] for spec in specs if isinstance(spec, Mapping) and "source" in spec]
    if len(sources) != 1 or not isinstance(sources[0], Mapping):
        return False
    source = sources[0]
    path = source.get("path")
    if source.get("type") != "file" or source.get("finite") is not True or not isinstance(path, str):
        return False
    try:
        return Path(path).is_file() and Path(path).stat().st_size < SMALL_BYTES
    except (OSError, ValueError):
        return False


def _run(project: Project, flow: Flow, spark: Starting, shown: Plain, fresh: bool) -> Summary:
    from penstock.connectors.file.storage import storage_for
    from penstock.connectors.stdout import reader_gone
    from penstock.control.fleet.lifecycle import Keeper
    from penstock.engine.runtime.checkpoints import memory_of
    from penstock.frames.streams.cursors import forget_cursor

    settings = project.settings
    log = settings.home / "logs" / f"run-{project.key}.log"
    shown.step("starting Spark…")
    what = f"{str(project.chosen['kind']).lower()} '{flow.id}'"
    with Lock(project.directory / "lock", what), spark.session(log) as session:
        shown.step("checking the pipeline…")
        if fresh and flow.source.component.piped:
            project.forget_input()
        if flow.source.component.held:
            project = project.inferred(flow, session)
            flow = project.resolve()
        plan = project.plan(flow, session)
        show_problems(project.warnings(flow), level="warning")
        checkpoint = f"{project.checkpoints}/{memory_of(flow, lambda: plan.output).key}"
        storage = storage_for(checkpoint, session)
        resumed = storage.exists(checkpoint)
        if fresh:
            storage.remove(checkpoint)
            forget_cursor(flow.source.component.reads(flow.site), flow.site)
            rest = "with the lines kept of standard input" if flow.source.component.piped else REREAD
            note(f"earlier progress deleted: {rest}" if resumed else "no earlier progress")
            resumed = False
        drain_s = settings.worker.drain_ms / 1000
        keeper = Keeper(
            flow.id, project.resolve, session, lambda _: checkpoint, planned=plan, drain_s=drain_s
        )
        on_stop(keeper.drain)
        started = time.monotonic()
        keeper.start()
        while not keeper.ended:
            shown.update(flow.id, keeper.state)
            keeper.join(POLL_S)
            if reader_gone():
                keeper.abort()
        return Summary.of(flow.id, keeper.state, time.monotonic() - started, resumed, flow.site.dead)
