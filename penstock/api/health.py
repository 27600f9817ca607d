"""Liveness, readiness, and the workers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from penstock.api.access.parameters import Somebody
from penstock.api.errors import Responses, failures
from penstock.api.kinds import KINDS
from penstock.api.pipes import Status
from penstock.api.views import View
from penstock.control.access.roles import permits
from penstock.control.documents.service import Readiness, Service
from penstock.control.fleet.processes import Phase
from penstock.errors import Problem


class Health(View):
    """The process is responding."""

    status: Literal["ok"] = "ok"


class WorkerStartView(View):
    """The start-up state of a worker that was started with this server."""

    worker: int = Field(description="Number of the worker, from 1.")
    phase: Phase = Field(
        description="`starting_spark`, `connecting` to the registry, then `ready`; `failed` if it has ended."
    )
    since: datetime = Field(description="Start time of its process.")
    failures: int = Field(description="Number of consecutive failed starts.")
    error: str | None = Field(description="Why the last process failed to start: the end of its log.")
    log: str = Field(description="Log file.")


class ReadinessInfo(View):
    """Whether flows can run, and the status of each flow, by kind and name."""

    ready: bool
    problems: list[Problem]
    startup: list[WorkerStartView] = Field(description="The workers that were started with this server.")
    pipelines: dict[str, Status]
    sources: dict[str, Status]
    tasks: dict[str, Status]
    sinks: dict[str, Status]


class WorkerView(View):
    """A process that runs flows."""

    id: str
    host: str
    pid: int
    state: str = Field(
        description="`ready`, `standby` (takes flows when another worker is lost), `draining`, `drained`, or"
        " `questions` (runs no flows; answers test runs, queries, validation and connection tests)."
    )
    alive: bool
    flows: int
    labels: dict[str, str]
    capacity: int | None = Field(description="Maximum number of flows; null: no limit.")
    started_at: datetime
    info: dict[str, Any]


_NOT_READY: Responses = {503: {"model": ReadinessInfo, "description": "Nothing can run now."}}


def health_routes(service: Service) -> APIRouter:
    """Probes, and the list of workers."""
    router = APIRouter()

    # Runs in the event loop: responds even while all threads are busy.
    @router.get("/healthz", tags=["health"], summary="Liveness probe", operation_id="getHealth")
    async def health() -> Health:
        return Health()

    @router.get(
        "/readyz",
        tags=["health"],
        summary="Readiness probe, with the status of all flows",
        description="Without a login, the answer only says whether flows can run.",
        operation_id="getReadiness",
        responses=_NOT_READY,
    )
    def readiness(response: Response, caller: Somebody) -> ReadinessInfo:
        found = service.readiness()
        response.status_code = 200 if found.ready else 503
        if caller is None or not permits(caller.role, "viewer"):
            found = Readiness(found.ready, [])
        statuses = {kind.place: found.statuses.get(kind.name, {}) for kind in KINDS if kind.runs}
        whole = {"ready": found.ready, "problems": found.problems, "startup": found.startup, **statuses}
        return ReadinessInfo.model_validate(whole, from_attributes=True)

    @router.get("/workers", tags=["workers"], summary="List workers", operation_id="listWorkers")
    def workers() -> list[WorkerView]:
        return [WorkerView.model_validate(vars(worker)) for worker in service.workers()]

    @router.post(
        "/workers/{worker}/drain",
        tags=["workers"],
        summary="Move all flows off a worker after the current batch; it takes no new flows",
        operation_id="drainWorker",
        responses=failures(404),
    )
    def drain(
        worker: Annotated[str, Path(min_length=1, description="Id of the worker, or a prefix of it.")],
    ) -> WorkerView:
        return WorkerView.model_validate(vars(service.drain_worker(worker)))

    return router
