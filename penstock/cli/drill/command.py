"""`penstock drill`: injects faults into workers, and checks that no event was lost or repeated."""

from __future__ import annotations

import json as json_module
import random
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Json, load_settings, settled
from penstock.cli.output import FAILED, Usage, note, show_json
from penstock.cli.signals import INTERRUPTED, on_stop
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.cli.drill.rounds import Kind
    from penstock.cli.drill.subjects import Subjects

MOST_SEEDS = 1_000_000


def drill(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, directories or a bundle with pipelines. Default: generated ones.",
            show_default=False,
        ),
    ] = None,
    from_server: Annotated[
        str | None,
        typer.Option("--from", help="Copy the pipelines of the server at this URL.", show_default=False),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            help="File with recorded events, one JSON object per line, as input of all copies.",
            show_default=False,
        ),
    ] = None,
    pipelines: Annotated[int, typer.Option("--pipelines", min=1, help="Number of generated pipelines.")] = 20,
    workers: Annotated[int, typer.Option("--workers", min=2, help="Number of workers.")] = 3,
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="Number of faults.")] = 10,
    faults: Annotated[
        str, typer.Option("--faults", help="Kinds of faults, separated by commas.")
    ] = "kill,freeze,cut",
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap",
            help="Inject the next fault as soon as two workers are ready: harder, with longer takeovers.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, help="Seed of an earlier drill, to repeat its faults.", show_default=False
        ),
    ] = None,
    lease_ms: Annotated[
        int | None,
        typer.Option("--lease-ms", min=500, help="Lease of the workers; see `worker.lease_ms`."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Empty directory for all data, kept after the drill. Default: a temporary directory.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Kill, freeze and isolate workers, and check that no event is lost or delivered twice.

    The drill uses its own server, workers and data directory; your installation is not touched. It runs
    copies of your pipelines with the same steps: sources are replaced by files of generated or recorded
    events, and sinks by file sinks. Each worker starts Spark, which takes about 1 GB of memory and, on two
    cores, 10 s.

    A fault is a kill -9 (`kill`), a SIGSTOP for longer than the lease (`freeze`), or a network partition
    between worker and server for longer than the lease (`cut`). Ctrl-C ends the drill and prints the report
    so far.

    Exit code 0: the outputs are correct. 1: they are not, or the drill failed. 130: it was interrupted.
    """
    from penstock.spark.java import require_java

    kinds = _kinds(faults)
    settings = settled(load_settings(worker__lease_ms=lease_ms))
    if settings.worker.heartbeat_ms and settings.worker.heartbeat_ms * 2 > settings.worker.lease_ms:
        raise Usage(Problem(code="invalid_value", message="shorter than two heartbeats", path="--lease-ms"))
    subjects = _subjects(files, from_server, events, pipelines)
    require_java()
    chosen = random.randrange(MOST_SEEDS) if seed is None else seed

    from penstock.cli.drill.drill import Drill
    from penstock.cli.drill.report import Report, replaced_in
    from penstock.cli.drill.rounds import plan_faults

    report = Report(chosen, workers, len(subjects.pipelines), settings.worker.lease_ms / 1000, rounds)
    report.replaced = replaced_in(subjects.pipelines)
    for name, parts in report.replaced.items():
        for part in parts:
            note(f"{name}: {part}")
    note(f"seed {chosen}")
    stop = threading.Event()
    on_stop(stop.set)
    with _directory(directory) as root:
        planned = plan_faults(chosen, rounds, workers, kinds)
        Drill(root, settings, subjects, planned, report, stop, note, overlap=overlap).run()
    if json:
        show_json(report.to_json())
    else:
        report.show()
    if report.verdict is None:
        raise typer.Exit(INTERRUPTED)
    if not report.verdict.ok:
        raise typer.Exit(FAILED)


def _kinds(faults: str) -> list[Kind]:
    from penstock.cli.drill.rounds import KINDS
    from penstock.errors import did_you_mean

    kinds: list[Kind] = []
    for word in faults.split(","):
        found = next((kind for kind in KINDS if kind == word.strip()), None)
        if found is None:
            hint = did_you_mean(word.strip(), KINDS) or f"kinds are {', '.join(KINDS)}"
            message = f"there is no fault '{word.strip()}'"
            raise Usage(Problem(code="unknown_fault", message=message, path="--faults", hint=hint))
        kinds.append(found)
    return kinds


def _subjects(
    files: list[str] | None, from_server: str | None, events: str | None, pipelines: int
) -> Subjects:
    from penstock.cli.drill.subjects import copied_subjects, generated_subjects
    from penstock.cli.files import Found, read_files

    if files and from_server:
        message = "give files or --from, not both"
        raise Usage(Problem(code="two_inputs", message=message, path="--from"))
    if not files and not from_server:
        if events is not None:
            message = "generated pipelines have their own events"
            hint = "give files or --from to drill copies of your pipelines"
            raise Usage(Problem(code="unused_events", message=message, path="--events", hint=hint))
        return generated_subjects(pipelines)
    if from_server:
        from penstock.cli.client import connect

        bundle = connect(from_server).call("GET", "/bundle", params={"format": "json"})
        found = [Found(from_server, raw) for raw in bundle["documents"]]
    else:
        found = read_files(files or [])
    return copied_subjects(found, _recorded(events) if events else [])


def _recorded(file: str) -> list[str]:
    from penstock.cli.files import read_bytes

    lines = [line for line in read_bytes(file).decode("utf-8", "replace").splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            fits = isinstance(json_module.loads(line), dict)
        except ValueError:
            fits = False
        if not fits:
            message = f"line {number} of {file} is not a JSON object"
            raise Usage(Problem(code="invalid_events", message=message, path="--events"))
    if not lines:
        raise Usage(Problem(code="no_events", message=f"{file} has no events", path="--events"))
    return lines


@contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """The directory of a drill; a temporary one is removed at the end."""
    if given is not None:
        if given.exists() and (not given.is_dir() or any(given.iterdir())):
            message, hint = (
                f"{given} is not an empty directory",
                "choose a directory that doesn't exist or is empty",
            )
            raise Usage(Problem(code="not_empty", message=message, path="--dir", hint=hint))
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="penstock-drill-"))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
