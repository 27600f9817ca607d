"""`penstock stream produce`: appends events from a file or standard input."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from penstock.cli.bars import bar
from penstock.cli.client import Client, NoServer, connect, path_of
from penstock.cli.options import Json, Server
from penstock.cli.output import FAILED, Usage, note, say, show_json, show_problems
from penstock.cli.stream_server import Name
from penstock.cli.text import plural
from penstock.errors import Problem

if TYPE_CHECKING:
    import httpx

Format = Literal["ndjson", "json", "csv", "text", "arrow"]

TYPES = {
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "csv": "text/csv",
    "text": "text/plain",
    "arrow": "application/vnd.apache.arrow.stream",
}
CHUNK_BYTES = 1024 * 1024
PATIENCE_S = 60.0
"""Seconds to wait for a server that stops responding after the first request."""

SHOWN = 10


@dataclass
class Produced:
    """The result for all events so far."""

    stream: str
    accepted: int = 0
    first: int | None = None
    next: int | None = None
    misfits: int = 0
    dead_letters: str | None = None
    waited_s: float = 0.0
    problems: list[dict[str, Any]] = field(default_factory=list)


def produce(
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Input file. Default: standard input.")
    ] = None,
    file_format: Annotated[
        Format, typer.Option("--format", help="Format of the input: one event per line, row or element.")
    ] = "ndjson",
    key: Annotated[str | None, typer.Option(help="Key for events without a key.")] = None,
    atomic: Annotated[
        bool,
        typer.Option("--atomic", help="Stop at the first batch with an event that doesn't match the schema."),
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Number of events per request.")] = 1000,
    server: Server = None,
    json: Json = False,
) -> None:
    """Append events to a stream. Waits while the stream is full. Exit code 1 if an event doesn't match.

    Requests are numbered, so that no event is stored twice if a response is lost and the request is retried.
    """
    client = connect(server)
    options = {"key": key, "atomic": str(atomic).lower(), "producer": f"cli-{uuid.uuid4().hex}"}
    sender = _Sender(client, path_of("Stream", name, "events"), TYPES[file_format], options, Produced(name))
    if file is not None and not file.is_file():
        raise Usage(Problem(code="not_found", message=f"there is no file {file}"))
    total = file.stat().st_size if file is not None else 0
    done = 0
    with (
        file.open("rb") if file is not None else nullcontext(sys.stdin.buffer) as source,
        bar(name, quiet=json) as progress,
    ):
        for part in _parts(source, file_format, batch):
            if not sender.send(part):
                break
            done += len(part)
            progress(min(done, total), total)
    _tell(sender.done, json)


def _tell(done: Produced, as_json: bool) -> None:
    if as_json:
        show_json(asdict(done))
    else:
        show_problems(Problem.model_validate(problem) for problem in done.problems[:SHOWN])
        if done.misfits:
            where = f"; kept in {done.dead_letters}" if done.dead_letters else ""
            note(f"{plural(done.misfits, 'event')} did not match the schema{where}")
        if done.waited_s:
            note(f"waited {done.waited_s:.0f} s for room")
        offsets = f", offsets {done.first} to {(done.next or 0) - 1}" if done.first is not None else ""
        say((f"{done.stream} ", "bold"), f"{plural(done.accepted, 'event')} appended{offsets}")
    if done.misfits:
        raise typer.Exit(FAILED)


class _Sender:
    """Sends one part after another, each until it is known to be stored or rejected."""

    def __init__(
        self, client: Client, path: str, content_type: str, options: dict[str, str | None], done: Produced
    ) -> None:
        self.done = done
        self._client, self._path, self._type = client, path, content_type
        self._options = {name: value for name, value in options.items() if value is not None}
        self._sent = 0

    def send(self, part: bytes) -> bool:
        """Send a part. Returns whether to continue with the next one."""
        while (answer := self._try(part)).status_code in (429, 503):
            seconds = float(answer.headers.get("retry-after", 1))
            time.sleep(seconds)
            self.done.waited_s += seconds
        self._sent += 1
        told = answer.json() if answer.status_code in (200, 400) else {}
        if "accepted" not in told:
            raise self._client.refusal(answer)
        self._note(told)
        return answer.status_code == 200 or self._options["atomic"] == "false"

    def _try(self, part: bytes) -> httpx.Response:
        params = {**self._options, "batch": str(self._sent)}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._client.answer(
                    "POST", self._path, content=part, params=params, headers={"Content-Type": self._type}
                )
            except NoServer:
                if self._sent == 0 or time.monotonic() > deadline:
                    raise
                time.sleep(1.0)

    def _note(self, told: dict[str, Any]) -> None:
        done = self.done
        done.accepted += told["accepted"]
        if told["accepted"]:
            done.first = told["first"] if done.first is None else done.first
            done.next = told["next"]
        done.misfits += told.get("misfits", 0)
        if told.get("dead_letters"):
            done.dead_letters = told["dead_letters"]["stream"]
        room = 100 - len(done.problems)
        done.problems += told.get("errors", [])[:room]


def _parts(source: IO[bytes], file_format: Format, batch: int) -> Iterator[bytes]:
    if file_format == "json":
        yield source.read()
    elif file_format == "arrow":
        yield from _arrow_parts(source, batch)
    elif file_format == "csv":
        rows = _csv_rows(source)
        header = next(rows, b"")
        yield from (header + part for part in _grouped(rows, batch))
    else:
        yield from _grouped(source, batch)


def _grouped(lines: Iterator[bytes] | IO[bytes], batch: int) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if len(held) >= batch or size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _csv_rows(source: IO[bytes]) -> Iterator[bytes]:
    """The unparsed rows of a CSV file: a row with a quoted line break spans several lines."""
    row = b""
    for line in source:
        row += line
        if row.count(b'"') % 2 == 0:
            yield row
            row = b""
    if row:
        yield row


def _arrow_parts(source: IO[bytes], batch: int) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(source) as reader:
            for found in reader:
                for at in range(0, found.num_rows, batch):
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, reader.schema) as writer:
                        writer.write_batch(found.slice(at, batch))
                    yield sink.getvalue().to_pybytes()
    except pa.ArrowInvalid as error:
        raise Usage(Problem(code="not_arrow", message=f"not a valid Arrow IPC stream: {error}")) from None
