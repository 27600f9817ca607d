"""The lifecycle of flows: pause, resume, stop, start, restart, and progress."""

from typing import Any

from fastapi import APIRouter, Response

from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.pipes import Progress
from penstock.control.documents.service import Action, Service

_ACTIONS: dict[Action, tuple[str, str]] = {
    "pause": ("Pause {}", "Stops after the current batch is delivered."),
    "resume": ("Resume {}", "Continues from where it was paused."),
    "stop": ("Stop {}", "Stops after the current batch, until it is started again."),
    "start": ("Start {}", "Also starts a failed or completed flow. It continues from where it stopped."),
    "restart": (
        "Restart {}",
        "Stops after the current batch and starts again from there. A failed, completed or stopped flow is "
        "started. A paused flow must be resumed instead.",
    ),
}


def lifecycle_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of a runnable kind for its lifecycle."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}", tags=[kind.place])

    def add(action: Action, summary: str, description: str) -> None:
        @router.post(
            f"/{action}",
            summary=summary.format(kind.one),
            description=description,
            operation_id=f"{action}{kind.name}",
            response_model=kind.info,
            responses=failures(403, 404, 409, 422),
        )
        def act(name: Name, response: Response) -> Any:
            record = service.act(kind.name, name, action)
            response.headers["ETag"] = record.etag
            return kind.shown(service, record)

    for action, (summary, description) in _ACTIONS.items():
        add(action, summary, description)

    @router.get(
        "/progress",
        summary=f"Get the progress of {kind.one}",
        operation_id=f"get{kind.name}Progress",
        responses=failures(404, 409, 422),
    )
    def progress(name: Name) -> Progress:
        return Progress.model_validate(service.progress(kind.name, name))

    return router
