"""`penstock bench`: measures a pipeline on its own events without affecting it."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import complete
from penstock.cli.client import connect
from penstock.cli.options import Home, Json, Server, load_settings, settled
from penstock.cli.output import FAILED, note, show_json, show_problems
from penstock.cli.sessions import Starting, starting_spark
from penstock.cli.signals import on_stop
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.cli.bench_target import Target
    from penstock.engine.measure.events import Input
    from penstock.engine.measure.figures import Figures
    from penstock.engine.plan.flow import Flow
    from penstock.settings import Settings

MISMATCH = "events were lost or counted twice: report this with the output of --json"


def bench(
    target: Annotated[
        str,
        typer.Argument(
            help="A file, or the name of a pipeline on a server (`task/NAME` for a task).",
            autocompletion=complete.targets,
            show_default=False,
        ),
    ],
    events: Annotated[
        int,
        typer.Option(
            "--events", min=1, help="Number of events to measure: the most recent ones of the stream."
        ),
    ] = 100_000,
    against: Annotated[
        str | None, typer.Option("--against", help="Compare with the document in this file.")
    ] = None,
    revision: Annotated[
        int | None, typer.Option("--revision", min=1, help="Compare with this revision of the document.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of a comparison.")] = 3,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the document, if the file has several.", show_default=False),
    ] = None,
    requests: Annotated[
        bool, typer.Option("--requests", help="Let steps that call external systems send their requests.")
    ] = False,
    home: Home = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """Measure a pipeline on its own recent events. Nothing is written to its sinks, and it keeps running.

    The events are the most recent ones of the stream that the pipeline reads, all events of a finite source,
    or, if the stream is empty, events generated from its schema; the report states which. Sinks are replaced
    by shadow sinks that only count events. Exit code 1 if the counts do not add up.

    With --against or --revision, two versions are measured alternately on the same events.
    """
    settings = settled(load_settings(home=home))
    options = _Options(events, rounds, requests, quiet=json, began=time.monotonic())
    with starting_spark(settings, short=False) as spark:
        from penstock.cli.bench_target import from_file, from_server, is_file, other_file, refuse_mixed
        from penstock.cli.bench_target import revision as revision_of
        from penstock.cli.logs import configure

        refuse_mixed(target, against, revision)
        configure(settings.log)
        if is_file(target):
            chosen = from_file(target, name, settings)
        else:
            chosen = from_server(connect(server), target, settings)
        other = None
        if against is not None:
            other = other_file(against, chosen, settings)
        elif revision is not None:
            other = revision_of(connect(server), target, revision, chosen)
        with _directory() as directory:
            report, mismatches = _bench(chosen, other, spark, settings, directory, options)
    if json:
        show_json(report)
    show_problems([Problem(code="count_mismatch", message=each, hint=MISMATCH) for each in mismatches])
    if mismatches:
        raise typer.Exit(FAILED)


@dataclass(frozen=True)
class _Options:
    events: int
    rounds: int
    requests: bool
    quiet: bool
    began: float


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory for checkpoints, dead letters and generated events, removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield directory
    finally:
        from penstock.frames.logs import LOGS

        for log in (directory / "streams").glob("*/*"):
            LOGS.drop(log)
        shutil.rmtree(directory, ignore_errors=True)


def _bench(
    chosen: Target,
    other: Target | None,
    spark: Starting,
    settings: Settings,
    directory: Path,
    options: _Options,
) -> tuple[dict[str, object], list[str]]:
    """Measure one version or compare two. Returns the report and any count mismatches."""
    from penstock.cli.bench_runs import Turn, Version
    from penstock.cli.bench_target import NotLocal
    from penstock.cli.bench_views import comparison_report, show_comparison
    from penstock.engine.measure.comparison import compare
    from penstock.engine.measure.events import input_of

    say = (lambda text: None) if options.quiet else note
    versions = [Version(each, settings, directory, options.requests) for each in (chosen, other) if each]
    flow = versions[0].flow("input")
    try:
        given = input_of(flow, options.events)
    except NotLocal:
        if other is not None:
            raise
        stop = threading.Event()
        on_stop(stop.set)
        given, figures = chosen.on_worker(flow, options.events, stop, say)
        return _reported(chosen.label, given, figures, flow, None, options)
    say(f"input: {given.about}")
    say("starting Spark…")
    with spark.session(settings.home / "logs" / "bench.log") as session:
        start_s = time.monotonic() - options.began
        stop = threading.Event()
        on_stop(stop.set)
        turns = [Turn(each, given, session, directory, stop, say) for each in versions]
        if given.events is not None:
            for turn in turns:
                turn.warm_up()
        if len(turns) == 1:
            return _reported(chosen.label, given, turns[0](), flow, start_s, options)
        compared = compare(turns[0], turns[1], options.rounds)
        labels = (turns[0].label, turns[1].label)
        if not options.quiet:
            show_comparison(labels, given, compared)
        runs = [*compared.first, *compared.again, *compared.second]
        return comparison_report(labels, given, compared), sorted({m for r in runs for m in r.mismatches()})


def _reported(
    label: str, given: Input, figures: Figures, flow: Flow, start_s: float | None, options: _Options
) -> tuple[dict[str, object], list[str]]:
    """Show the report of a single run unless quiet. Returns the report and any count mismatches."""
    from penstock.cli.bench_views import run_report, show_run
    from penstock.engine.measure.advice import bottleneck

    found = bottleneck(figures, flow.batch.max_events)
    if not options.quiet:
        show_run(label, given, figures, found, start_s)
    return run_report(label, given, figures, found, start_s), figures.mismatches()
