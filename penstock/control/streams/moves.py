"""Moves of streams to Kafka: starting, tracking, resuming and undoing them."""

from __future__ import annotations

import copy
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import structlog

from penstock.control.documents.service import Service
from penstock.control.registry.records import Record
from penstock.errors import Conflict, Invalid, NotFound, PenstockError, PreconditionFailed, Problem
from penstock.streams.config import read_config
from penstock.streams.home import no_cluster
from penstock.streams.kafka.moving import Cancelled, Move, begin, undo
from penstock.streams.moves import is_moving, read_note, remove_note

log = structlog.get_logger()

Phase = Literal["copying", "completed", "failed", "interrupted"]

CANCEL_S = 60.0
"""Seconds that a move may take to end after it was canceled: it may be waiting for a broker."""


@dataclass(frozen=True)
class MoveState:
    """The progress of a move."""

    stream: str
    to: str
    phase: Phase
    bytes: int = 0
    total_bytes: int = 0
    error: Problem | None = None
    started_at: float = 0.0


@dataclass
class _Running:
    state: MoveState
    cancelled: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()


class Moves:
    """The moves of this server. A move that was interrupted by a crash resumes when it is started again."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._known: dict[str, _Running] = {}

    def start(self, name: str, to: str) -> MoveState:
        """Start or resume a move of a stream; raises an error with the reason if it can't be moved."""
        record = self._service.get("Stream", name)
        cluster = self._service.streams.home.kafka
        if cluster is None:
            raise Invalid(no_cluster())
        with self._lock:
            known = self._known.get(record.id)
            if known is not None and known.alive:
                hint = f"wait for it, or undo it: `penstock stream move '{record.name}' --undo`"
                message = f"stream '{record.name}' is already being moved"
                raise Conflict(Problem(code="move_running", message=message, hint=hint))
            directories = self._directories(record)
            for directory in directories:
                if directory is directories[-1] or not _is_there(directory):
                    begin(directory, cluster)
            running = _Running(MoveState(record.id, to, "copying", started_at=time.time()))
            run = threading.Thread(
                target=self._run, args=(record, running, directories), name="move", daemon=True
            )
            running.thread, self._known[record.id] = run, running
            run.start()
            return running.state

    def state(self, name: str) -> MoveState:
        """The progress of a stream's move; NotFound if the stream is not being moved."""
        record = self._service.get("Stream", name)
        if (known := self._known.get(record.id)) is not None:
            return known.state
        if any(map(is_moving, self._directories(record))):
            return MoveState(record.id, "kafka", "interrupted")
        message = f"stream '{record.name}' is not being moved"
        raise NotFound(Problem(code="no_move", message=message))

    def undo(self, name: str) -> None:
        """Cancel a move: the stream stays in its current storage, and the copy is removed."""
        state = self.state(name)
        record = self._service.get("Stream", name)
        if (known := self._known.get(record.id)) is not None and known.thread is not None:
            known.cancelled.set()
            known.thread.join(CANCEL_S)
        if state.phase == "completed" or _is_there(self._directories(record)[-1]):
            message = f"stream '{record.name}' is already in Kafka: the move can't be undone"
            raise Conflict(Problem(code="already_moved", message=message, path="spec.storage"))
        for directory in self._directories(record):
            if not _is_there(directory):
                undo(directory)
            remove_note(directory)
        self._known.pop(record.id, None)

    def settle(self) -> None:
        """Finish moves whose server stopped after the switch and before the document was updated."""
        for record in self._service.registry.list("Stream", limit=None).items:
            try:
                directories = self._directories(record)
                if any(map(is_moving, directories)) and all(map(_is_there, directories)):
                    self._finish(record, directories)
            except Exception as error:  # such as an invalid document: the server must start anyway
                log.warning("a move is not finished", stream=record.id, error=str(error))

    def _directories(self, record: Record) -> list[Path]:
        """The logs of a stream: the log of its misfits, if any, and then its own."""
        own = self._service.streams.place(record.id).directory
        dead = read_config(own).dead_letters
        return [own] if dead is None else [dead, own]

    def _run(self, record: Record, running: _Running, directories: list[Path]) -> None:
        try:
            for directory in directories:
                if (note := read_note(directory)) is not None:

                    def tell(done: int, total: int) -> None:
                        running.state = replace(running.state, bytes=done, total_bytes=total)

                    Move(directory, note, tell, running.cancelled.is_set).run()
            self._finish(record, directories)
            running.state = replace(running.state, phase="completed")
        except Cancelled:
            running.state = replace(running.state, phase="interrupted")
        except Exception as error:
            problem = (
                error.problems[0]
                if isinstance(error, PenstockError)
                else Problem(code="move_failed", message=str(error) or type(error).__name__)
            )
            log.warning("a move has failed", stream=record.id, error=str(error))
            running.state = replace(running.state, phase="failed", error=problem)

    def _finish(self, record: Record, directories: list[Path]) -> None:
        """Update the storage in the document, and remove the notes of the move."""
        while True:
            now = self._service.registry.get("Stream", record.id)
            document = copy.deepcopy(dict(now.document))
            document["spec"] = {**(document.get("spec") or {}), "storage": "kafka"}
            try:
                self._service.registry.update("Stream", record.id, document, expected=now.etag)
            except PreconditionFailed:  # saved by another client meanwhile
                continue
            break
        for directory in directories:
            remove_note(directory)


def _is_there(directory: Path) -> bool:
    """Whether a log is in Kafka."""
    return read_config(directory).spec.storage == "kafka"
