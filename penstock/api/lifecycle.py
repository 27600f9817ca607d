"""The life of a pipeline: pause, resume, stop, start, and what it has done."""

from fastapi import APIRouter, Response

from penstock.api.documents import Name
from penstock.api.errors import failures
from penstock.api.pipes import PipeInfo, Progress, pipe_info
from penstock.control.service import Action, Service

_ACTIONS: dict[Action, tuple[str, str]] = {
    "pause": ("Pause a pipeline", "Ends after the batch in hand; what was read is delivered."),
    "resume": ("Resume a paused pipeline", "It goes on where it was paused."),
    "stop": ("Stop a pipeline", "Ends after the batch in hand, until it is started again."),
    "start": ("Start a pipeline", "Also one that has failed or completed; it goes on where it ended."),
}


def lifecycle_routes(service: Service) -> APIRouter:
    """The routes that only pipelines have."""
    router = APIRouter(prefix="/pipelines/{name}", tags=["pipelines"])

    def add(action: Action, summary: str, description: str) -> None:
        @router.post(
            f"/{action}",
            summary=summary,
            description=description,
            operation_id=f"{action}Pipeline",
            responses=failures(403, 404, 409, 422),
        )
        def act(name: Name, response: Response) -> PipeInfo:
            record = service.act(name, action)
            response.headers["ETag"] = record.etag
            return pipe_info(record)

    for action, (summary, description) in _ACTIONS.items():
        add(action, summary, description)

    @router.get(
        "/progress",
        summary="Get the progress of a pipeline",
        operation_id="getPipelineProgress",
        responses=failures(404, 422),
    )
    def progress(name: Name) -> Progress:
        return Progress.model_validate(service.progress(name))

    return router
