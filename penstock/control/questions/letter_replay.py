"""The replay of dead letters in a worker, requested by the server."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.streams.logs import dead_letters_id
from penstock.engine.letters.reader import Letter, Letterbox, Wanted
from penstock.engine.letters.replay import Redelivery, RefusedLetter, ReplayResult
from penstock.engine.letters.replay_entry import Begin
from penstock.engine.letters.states import Marks, State, alone
from penstock.errors import PenstockError, Problem
from penstock.frames.logs import LOGS
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from penstock.control.fleet.worker import Worker

WAITING: frozenset[State] = frozenset({"new", "replaying"})
"""States of letters that are still to be replayed, including interrupted ones."""

REPLAYABLE: dict[str, frozenset[State]] = {
    "new": WAITING,
    "replayed": frozenset({"replayed"}),
    "all": WAITING | {"replayed"},
}


class ReplayRequest(BaseModel):
    """The letters of a flow to replay, and the options of the replay."""

    kind: str
    id: str
    offsets: list[int] | None = None
    step: str | None = None
    code: str | None = None
    contains: str | None = None
    state: Literal["new", "replayed", "all"] = "new"
    begin: Begin = "step"
    position: int = 0
    limit: int
    dry_run: bool = False


class ReplayAnswer(BaseModel):
    """The result of a replay, or the reason why it was rejected."""

    result: ReplayResult | None = None
    status: int = 200
    problems: list[Problem] = []


def life_of(place: StreamPlace) -> str:
    """The permanent name of a stream of letters; a later stream of the same id has other offsets."""
    return f"{place.directory.parent.name}/{place.directory.name}"


def redelivery_routes(worker: Worker) -> APIRouter:
    """The routes of a worker for dead letters."""
    router = APIRouter(prefix="/letters")

    @router.post("/replay")
    async def replay(request: ReplayRequest) -> ReplayAnswer:
        try:
            return ReplayAnswer(result=await run_in_threadpool(redeliver, worker, request))
        except PenstockError as error:
            return ReplayAnswer(status=error.status, problems=error.problems)

    return router


def redeliver(worker: Worker, request: ReplayRequest) -> ReplayResult:
    """Replay letters through the current revision of their flow."""
    record = worker.registry.get(request.kind, request.id)
    directory = flow_directory(worker.settings, record)
    place = worker.streams.place(dead_letters_id(record))
    with alone(directory), Marks.open(directory, life_of(place)) as marks:
        box = Letterbox(LOGS.log(place.directory), flow_name(record), marks)
        marks.forget_before(box.log.bounds().first)
        letters, refused, position = _selected(box, request)
        result = ReplayResult(
            request=uuid.uuid4().hex[:12], dry_run=request.dry_run, refused=refused, next=position
        )
        if letters:
            flow = worker.resolve(record)
            Redelivery(flow, worker.spark, box, worker.permitted).replay(letters, request.begin, result)
    return result


def _selected(box: Letterbox, request: ReplayRequest) -> tuple[list[Letter], list[RefusedLetter], int | None]:
    """The requested letters, the rejected ones, and the position of further letters."""
    states = REPLAYABLE[request.state]
    if request.offsets is not None:
        found = box.at(request.offsets)
        fit = [letter for letter in found.values() if letter.mark.state in states]
        refused = [_missing(offset) for offset in sorted(set(request.offsets) - set(found))]
        return fit, refused + [_not_asked(letter) for letter in found.values() if letter not in fit], None
    wanted = Wanted(request.step, request.code, request.contains, states)
    letters: list[Letter] = []
    position: int | None = request.position
    while position is not None and len(letters) < request.limit:
        page = box.page(position, request.limit - len(letters), wanted)
        letters += page.letters
        position = page.next
    return letters, [], position


def _missing(offset: int) -> RefusedLetter:
    return RefusedLetter(code="not_found", message=f"there is no letter at offset {offset}", offset=offset)


def _not_asked(letter: Letter) -> RefusedLetter:
    state = letter.mark.state
    hints = {
        "discarded": f"restore it first: `penstock dead-letters discard NAME {letter.offset} --undo`",
        "replayed": "to replay it again, select state `replayed` or pass `--again`",
    }
    hint = hints.get(state, f"select letters with state {state}")
    return RefusedLetter(
        code=f"letter_{state}", message=f"the letter is {state}", hint=hint, offset=letter.offset
    )
