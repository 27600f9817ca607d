"""`penstock stream verify|repair|export`: the files of streams, even while no server runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from penstock.cli.bars import bar
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import FAILED, Usage, note, say, show_json
from penstock.cli.text import plural, size
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.control.registry.store import Registry
    from penstock.settings import Settings
    from penstock.streams.faults import Fault

Names = Annotated[
    list[str] | None, typer.Argument(help="Names of streams. Default: all streams.", show_default=False)
]


def verify(names: Names = None, home: Home = None, json: Json = False) -> None:
    """Verify the files of streams and list damaged offsets. Exit code 1 if there is any damage."""
    from penstock.streams.repair.verify import verify as read_all

    results: list[dict[str, Any]] = []
    sound = True
    for stream, directory in _chosen(home, names):
        with bar(stream, quiet=json) as progress:
            report = read_all(directory, progress)
        sound = sound and report.sound
        numbers = {"events": report.events, "bytes": report.bytes, "segments": report.segments}
        faults = [{**asdict(fault), "harmless": fault.harmless} for fault in report.faults]
        results.append({"stream": stream, "sound": report.sound, **numbers, "faults": faults})
        if not json:
            holds = f"{plural(report.events, 'event')}, {size(report.bytes)}"
            state = ("sound", "green") if report.sound else ("damaged", "bold red")
            say((f"{stream} ", "bold"), state, f": {holds} in {plural(report.segments, 'segment')}")
            for fault in report.faults:
                _show_fault(fault)
    if json:
        show_json({"items": results})
    elif not sound:
        note("run `penstock stream repair`")
    if not sound:
        raise typer.Exit(FAILED)


def repair(
    names: Names = None,
    discard: Annotated[bool, typer.Option("--discard", help="Don't keep a copy of damaged data.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Repair streams without losing any readable event. Exit code 1 if damage remains."""
    from penstock.streams.repair.repair import repair as repair_log

    results: list[dict[str, Any]] = []
    left = False
    for stream, directory in _chosen(home, names):
        with bar(stream, quiet=json) as progress:
            done = repair_log(directory, progress, discard=discard)
        left = left or bool(done.left)
        results.append(
            {
                "stream": stream,
                "repaired": [asdict(fault) for fault in done.repaired],
                "left": [asdict(fault) for fault in done.left],
                "lost": [{"first": first, "next": end} for first, end in done.lost],
                "kept": [str(path) for path in done.kept],
            }
        )
        if not json:
            what = f"{plural(len(done.repaired), 'fault')} repaired" if done.repaired else "nothing to repair"
            say((f"{stream} ", "bold"), what)
            for first, end in done.lost:
                say(f"  lost: offsets {first} to {end - 1}")
            for path in done.kept:
                say(f"  damaged data is kept as {path}")
            for fault in done.left:
                _show_fault(fault)
    if json:
        show_json({"items": results})
    if left:
        raise typer.Exit(FAILED)


def export(
    name: Annotated[str, typer.Argument(help="Name of the stream.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")
    ] = None,
    file_format: Annotated[
        Literal["ndjson", "csv", "parquet", "arrow"], typer.Option("--format", help="Format of the file.")
    ] = "ndjson",
    position: Annotated[
        str, typer.Option(help="Start position: earliest, offset:N or time:ISO 8601.")
    ] = "earliest",
    until: Annotated[
        int | None, typer.Option(min=0, help="End offset, exclusive. Default: the end of the stream.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Include offset, time, key and headers of each event.")
    ] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Export the events of a stream to a file. Exit code 1 if some can't be read."""
    from penstock.specs.positions import parse_position
    from penstock.streams.config import read_config
    from penstock.streams.export import export as write
    from penstock.streams.log import Log
    from penstock.streams.pool import open_storage

    try:
        begin = parse_position(position)
    except ValueError as error:
        raise Usage(Problem(code="invalid_position", message=str(error))) from None
    if json and output is None:
        message = "--json needs --output for the events"
        raise Usage(Problem(code="exclusive_options", message=message, hint="add --output FILE"))
    ((stream, directory),) = _chosen(home, [name])
    log = Log(open_storage(directory))
    lost: list[dict[str, Any]] = []

    def tell(first: int, end: int, reason: str) -> None:
        lost.append({"first": first, "next": end, "reason": reason})

    try:
        with bar(stream, quiet=json) as progress:
            count = write(
                log,
                read_config(directory).spec.schema_,
                output if output is not None else sys.stdout.buffer,
                file_format,
                start=log.resolve(begin),
                stop=until,
                details=details,
                progress=progress,
                lost=tell,
            )
    finally:
        log.close()
    if json:
        show_json(
            {"stream": stream, "events": count, "file": str(output), "format": file_format, "lost": lost}
        )
    else:
        for span in lost:
            note(f"offsets {span['first']} to {span['next'] - 1} could not be read: {span['reason']}")
        note(f"{plural(count, 'event')} of {stream} written" + (f" to {output}" if output else ""))
    if lost:
        raise typer.Exit(FAILED)


def _chosen(home: Path | None, names: Sequence[str] | None) -> list[tuple[str, Path]]:
    from penstock.control.streams.offline import stored_log, stored_logs

    with _opened(home) as (settings, registry):
        if not names:
            return list(stored_logs(settings, registry).items())
        found = [stored_log(settings, registry, name) for name in names]
    return [(directory.parent.name, directory) for directory in found]


@contextmanager
def _opened(home: Path | None) -> Iterator[tuple[Settings, Registry]]:
    from penstock.cli.worker import open_registry

    settings = settled(load_settings(home=home))
    if settings.registry.url is None and not (settings.home / "registry.db").exists():
        message = f"there is no Penstock in {settings.home}"
        raise Usage(Problem(code="no_home", message=message, hint="pass its directory with --home"))
    registry = open_registry(settings)
    try:
        yield settings, registry
    finally:
        registry.close()


def _show_fault(fault: Fault) -> None:
    where = (
        f"offsets {fault.first} to {fault.next - 1} in {fault.place}"
        if fault.next > fault.first
        else fault.place
    )
    style = "yellow" if fault.harmless else "bold red"
    say(("  " + fault.kind, style), f" {where}: {fault.message}")
