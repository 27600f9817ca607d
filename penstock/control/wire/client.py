"""The control plane of a worker on another machine: requests to the server, and the worker's own home."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import ssl
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from penstock.control.fleet.control import Assignments, Control, RegistryAway
from penstock.control.fleet.progress import can_move, shared_directory
from penstock.control.registry.documents import Documents
from penstock.control.registry.records import Record
from penstock.control.streams.logs import DEAD, HELD, Streams, input_of
from penstock.control.wire.methods import proxy
from penstock.errors import (
    Conflict,
    Invalid,
    NotFound,
    PenstockError,
    PreconditionFailed,
    Problem,
    Unauthorised,
    Unavailable,
)
from penstock.settings import Settings
from penstock.specs.catalog import catalog
from penstock.specs.documents import RUNNABLE
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamPlace
from penstock.streams.remote.storage import SERVERS

ANSWER_S = 10.0
"""Maximum seconds to wait for a response; less with a shorter lease."""

CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=3.0)
"""A flow that waits for events holds a connection. Servers close connections that are idle for 5 s."""

ONCE = {"write", "count"}
"""Methods of a storage that are not retried: it is unknown whether the first request was processed."""

REFUSALS: tuple[type[PenstockError], ...] = (Invalid, NotFound, Conflict, PreconditionFailed, Unauthorised)


class Wire:
    """Sends requests to a server, with the token of a worker."""

    def __init__(self, url: str, token: str, answer_s: float, ca_file: Path | None = None) -> None:
        self.url = url.rstrip("/")
        verify = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=answer_s,
            verify=verify,
            trust_env=False,
            limits=CONNECTIONS,
        )

    def ask(self, part: str, method: str, body: bytes) -> bytes:
        """The result of a method; RegistryAway if the server is unreachable or can't respond now."""
        try:
            answer = self._http.post(f"/wire/{part}/{method}", content=body)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise RegistryAway(f"the server {self.url} can't be reached: {why}") from error
        if answer.is_success:
            return answer.content
        raise self._refusal(answer)

    def ask_stream(self, stream: str, life: str, method: str, message: bytes) -> bytes:
        """The result of a method of a stream's storage; Unavailable if the server can't respond now.

        Retried once, since a server may close a connection while a request is being sent. The methods in
        `ONCE` are not retried: an append might be stored twice.
        """
        for again in (method not in ONCE, False):
            try:
                answer = self._http.post(
                    f"/wire/streams/{quote(stream)}/{life}/{method}",
                    content=message,
                    headers={"Content-Type": "application/octet-stream"},
                    timeout=ANSWER_S,
                )
            except httpx.TransportError as error:
                if again:
                    continue
                raise _away(stream, f"can't be reached: {error or type(error).__name__}", self.url) from error
            if answer.is_success:
                return answer.content
            refusal = self._refusal(answer)
            if isinstance(refusal, RegistryAway):
                raise _away(stream, f"responded with {answer.status_code}", self.url)
            raise refusal
        raise AssertionError

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _refusal(self, answer: httpx.Response) -> Exception:
        kind = next((cls for cls in REFUSALS if cls.status == answer.status_code), None)
        try:
            problems = [Problem.model_validate(each) for each in answer.json()["errors"]]
        except (ValueError, KeyError, TypeError):
            kind = None
        if kind is None:
            return RegistryAway(f"the server {self.url} responded with {answer.status_code}")
        return kind(*problems)


def wire_control(settings: Settings, wire: Wire) -> Control:
    """The control plane of a worker that knows only the address of a server."""
    documents = proxy(Documents, functools.partial(wire.ask, "documents"))
    flows = proxy(Assignments, functools.partial(wire.ask, "flows"))
    SERVERS[wire.url] = wire.ask_stream
    home = home_id(shared_directory(settings) or settings.home)
    return Control(documents, flows, OwnStreams(settings, documents, wire.url), home)


def home_id(home: Path) -> str:
    """The permanent id of a directory with the progress of flows, which can resume only there."""
    file = home / "home.id"
    home.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        made = home / f"home.id.{uuid.uuid4().hex}"
        made.write_text(str(uuid.uuid4()), encoding="utf-8")
        with contextlib.suppress(FileExistsError):  # another worker was faster
            os.link(made, file)  # with its content, in one step
        made.unlink()
    return file.read_text(encoding="utf-8")


def _away(stream: str, what: str, url: str) -> Unavailable:
    message = f"stream '{stream}' is on the server {url}, which {what}"
    return Unavailable(Problem(code="server_unreachable", message=message))


class OwnStreams(Streams):
    """The streams of a worker without the server's home.

    Registered streams, and the input of a source that producers push to, are on the server's disk. Dead
    letters, and the input of a source that the worker reads itself, are on the worker's disk; if its flows
    can move to another machine, they are on the server's disk too.
    """

    def __init__(self, settings: Settings, registry: Documents, server: str) -> None:
        super().__init__(settings, registry)
        self._far = replace(self.home, root=settings.home / "server-streams", server=server)
        self._own = self._far if can_move(settings) else self.home

    def all(self) -> Iterator[StreamPlace]:
        """The streams that this worker can access, and streams of flows on this machine."""
        for record in self._registry.list("Stream", limit=None).items:
            with contextlib.suppress(Invalid):  # in Kafka, for which this worker has no settings
                yield self._registered(record)
        for kind in RUNNABLE:
            for record in self._registry.list(kind, limit=None).items:
                near = self.has_input(record)
                if (near or self._is_pushed_to(record.document)) and (
                    held := self._input(record)
                ) is not None:
                    yield held
                if self._own.directory(record.id + DEAD, record.uid).is_dir():
                    yield self._letters(record)

    def remove(self, record: Record) -> None:
        """Remove the logs of a deleted document from this machine; the server removes its own."""
        super().remove(record)
        for directory in self._far.root.glob(f"*/{record.uid[:8]}"):
            shutil.rmtree(directory, ignore_errors=True)

    def _registered(self, record: Record) -> StreamPlace:
        spec = self._spec(record.document)
        if spec.storage == "kafka":
            return StreamPlace(record.id, spec, self.home.ensure(record.id, record.uid, spec))
        return StreamPlace(record.id, spec, self._far.ensure(record.id, record.uid, spec, storage=True))

    def _input(self, record: Record) -> StreamPlace | None:
        if record.kind not in HELD or not self._is_pushed_to(record.document):
            return super()._input(record)
        spec, stream = self._input_spec(record.document), input_of(record)
        if spec is None:
            return None
        return StreamPlace(stream, spec, self._far.ensure(stream, record.uid, spec, storage=True))

    def _at(self, stream: str, uid: str, spec: StreamSpec, *, storage: bool = False) -> StreamPlace:
        return StreamPlace(stream, spec, self._own.ensure(stream, uid, spec, storage=storage))

    def _is_pushed_to(self, raw: Mapping[str, Any]) -> bool:
        source = (raw.get("spec") or {}).get("source", raw.get("spec")) or {}
        if (ref := source.get("ref")) and (found := self._registry.find("Source", ref)):
            source = found.document.get("spec") or {}
        component = catalog("source").classes.get(str(source.get("type")))
        return component is not None and getattr(component, "push", False)
