"""Moving the position of a flow in its input stream: back to read events again, or ahead to skip them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.connectors.file.paths import is_local
from penstock.control.documents.edits import Planner
from penstock.control.documents.flow_states import at_rest, flow_of
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import state_directory
from penstock.control.questions.flow_files import FilesHere, FlowFiles
from penstock.control.registry.records import Record
from penstock.errors import Conflict, Problem, Unavailable
from penstock.frames.streams.cursors import cursor_in
from penstock.specs.positions import parse_position


@dataclass(frozen=True)
class Move:
    """A move of a flow's position, and its effects."""

    stream: str
    before: int | None
    """The next offset to read before the move; None if the flow has not read yet."""
    after: int
    again: int
    """Number of events that are read and delivered again."""
    skipped: int
    """Number of events that are never read."""
    loses: list[str]
    """Ids of the steps whose state is discarded."""
    restarts: bool
    """Whether the flow is running, so that the move restarts it."""


class Positions:
    """Plans and performs moves of positions."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._planner = Planner(service.settings, service.registry, service.streams)

    def plan(self, kind: str, name: str, position: str) -> Move:
        """The effects of a move; Conflict if the flow reads no stream, or the position is outside it."""
        record = self._service.registry.get(kind, name)
        runs = flow_of(record).status == "active"
        flow = self._planner.resolve(record)
        place = flow.source.component.reads(flow.site) if flow else None
        if flow is None or place is None:
            message = f"{kind.lower()} '{record.name}' " + ("reads no stream" if flow else "is not valid")
            hint = "only a flow that reads a stream has a position that can be moved"
            raise Conflict(Problem(code="no_position", message=message, hint=hint))
        log = self._service.streams.log_at(place.directory)
        bounds, after = log.bounds(), log.resolve(parse_position(position))
        if not bounds.first <= after <= bounds.next:
            message = f"offset {after} is not in stream '{place.id}'"
            hint = f"use offset:{bounds.first} to offset:{bounds.next}, earliest or latest"
            raise Conflict(Problem(code="outside_stream", message=message, path="to", hint=hint))
        cursor = cursor_in(log, flow.site.flow)
        before = None if cursor is None else max(bounds.first, cursor.next)
        return Move(
            place.id,
            before,
            after,
            again=max(0, (before or after) - after),
            skipped=max(0, after - (bounds.first if before is None else before)),
            loses=[part.id for part in flow.remembering],
            restarts=runs,
        )

    def move(self, kind: str, name: str, position: str) -> Move:
        """Stop a flow, make it start a new checkpoint at a position, and restart it if it was running."""
        planned = self.plan(kind, name, position)
        record = self._service.registry.get(kind, name)
        files = self._files(record)
        if planned.restarts:
            record = self._service.act(kind, record.id, "stop")
        try:
            if not at_rest(record):
                message = f"{kind.lower()} '{record.name}' is still shutting down"
                raise Unavailable(Problem(code="not_at_rest", message=message, hint="try again in a moment"))
            # Only a stopped flow has an up-to-date cursor: Spark reports a batch together with the next one.
            planned = replace(self.plan(kind, record.id, position), restarts=planned.restarts)
            # The cursor first: if only the cursor is moved, the flow still resumes at its old position.
            self._service.gate.begin_at(record, record.document, f"offset:{planned.after}")
            files.forget_checkpoints(kind, record.id)
        finally:
            if planned.restarts:
                self._service.act(kind, record.id, "start")
        return planned

    def _files(self, record: Record) -> FlowFiles:
        """The checkpoints of a flow: in this home, at the worker that stores them, or in remote storage."""
        service = self._service
        keeper = service.keeper_of(record)
        if keeper is None and not is_local(state_directory(service.settings, record)):
            keeper = next((worker for worker in service.workers() if worker.takes_flows), None)
            if keeper is None:
                message = "no worker is ready to remove the checkpoint of the flow"
                raise Unavailable(Problem(code="no_worker", message=message, hint="try again in a moment"))
        if keeper is None:
            return FilesHere(service.settings, service.registry)
        return service.rpc.files(keeper)
