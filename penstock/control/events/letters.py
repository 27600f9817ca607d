"""Operations on the dead letters of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx

from penstock.control.documents.service import Service
from penstock.control.events.letters_here import LetterPage, Letters, LettersHere, lettered
from penstock.control.questions.letter_replay import ReplayRequest
from penstock.engine.letters.reader import Found, Letter, Wanted
from penstock.engine.letters.replay import ReplayResult
from penstock.errors import PenstockError, Problem, Unavailable
from penstock.specs.positions import Position


class ReplayRefused(PenstockError):
    """A worker has rejected a replay of letters."""

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


class DeadLetters:
    """The dead letters of every flow of a service: in the service's own home, or in that of a worker."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._here = LettersHere(service.settings, service.registry, service.streams)

    def page(
        self,
        kind: str,
        name: str,
        position: Position,
        limit: int,
        wanted: Wanted,
        newest_first: bool = False,
    ) -> LetterPage:
        """Letters from a position on or, with `newest_first`, before it."""
        return self._of(kind, name).page(kind, name, position, limit, wanted, newest_first)

    def of_event(self, kind: str, name: str, offset: int, time: datetime) -> Found:
        """The letters of an event; see `LettersHere`."""
        return self._of(kind, name).of_event(kind, name, offset, time)

    def get(self, kind: str, name: str, offset: int) -> Letter:
        """One letter."""
        return self._of(kind, name).get(kind, name, offset)

    def edit(self, kind: str, name: str, offset: int, event: Mapping[str, Any]) -> Letter:
        """Replace the event of a letter; passing the original event reverts the edit."""
        return self._of(kind, name).edit(kind, name, offset, event)

    def discard(self, kind: str, name: str, offset: int) -> Letter:
        """Mark a letter as discarded, so that it is not replayed. The stream retains it."""
        return self._of(kind, name).discard(kind, name, offset)

    def restore(self, kind: str, name: str, offset: int) -> Letter:
        """Restore a discarded letter."""
        return self._of(kind, name).restore(kind, name, offset)

    def send(self, kind: str, name: str, offset: int) -> Letter:
        """Append the original event of a letter to the input stream of its flow again."""
        return self._of(kind, name).send(kind, name, offset)

    def _of(self, kind: str, name: str) -> Letters:
        worker = self._service.keeper_of(lettered(self._service.registry, kind, name))
        return self._here if worker is None else self._service.rpc.letters(worker)

    def replay(self, request: ReplayRequest) -> ReplayResult:
        """Replay letters on the flow's worker, or on any worker if the flow is not running."""
        record = lettered(self._service.registry, request.kind, request.id)
        request = request.model_copy(update={"id": record.id})
        service, holder = self._service, record.flow.worker if record.flow else None
        worker = next((w for w in service.flows.workers() if w.id == holder and w.alive), None)
        worker = worker or service.keeper_of(record)
        if worker is None:
            answer = service.judge.ask(
                lambda any: service.rpc.replay(any, request), _no_worker(), by="with_flows"
            )
        else:
            try:
                answer = service.rpc.replay(worker, request)
            except httpx.HTTPError:
                raise Unavailable(_no_worker()) from None
        if answer.result is None:
            raise ReplayRefused(answer.status, answer.problems)
        return answer.result


def _no_worker() -> Problem:
    hint = "wait a moment and try again"
    return Problem(code="no_worker", message="no worker is ready to replay letters", hint=hint)
