"""The revisions of documents: the same routes for every kind."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, ValidationError

from penstock.api.bodies import OneBody, described
from penstock.api.edits import ResetParameters, accepted, shown_edit
from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.params import IfMatch, Name
from penstock.api.views import (
    DiffInfo,
    RevisionInfo,
    RevisionSummary,
    diff_info,
    revision_info,
    revision_summary,
)
from penstock.control.documents.service import Service
from penstock.errors import Invalid
from penstock.specs.base import Spec
from penstock.specs.problems import problems_of

Number = Annotated[int, Path(ge=1, description="Number of the revision.")]


class RollbackRequest(Spec):
    """The revision to roll back to."""

    revision: int = Field(ge=1, description="Revision to roll back to.")


def revision_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of one kind for revisions."""
    router = APIRouter(prefix=f"/{kind.place}", tags=[kind.place])

    @router.get(
        "/{name}/revisions",
        summary=f"List the revisions of {kind.one}",
        operation_id=f"list{kind.name}Revisions",
        responses=failures(404, 422),
    )
    def list_(name: Name) -> list[RevisionSummary]:
        return [revision_summary(each) for each in service.revisions(kind.name, name)]

    @router.get(
        "/{name}/revisions/{number}",
        summary=f"Get a revision of {kind.one}",
        operation_id=f"get{kind.name}Revision",
        responses=failures(404, 422),
    )
    def get(name: Name, number: Number) -> RevisionInfo:
        return revision_info(service.registry.revision(kind.name, name, number))

    @router.get(
        "/{name}/diff",
        summary=f"Compare two revisions of {kind.one}",
        operation_id=f"diff{kind.name}",
        responses=failures(404, 422),
    )
    def diff(
        name: Name,
        before: Annotated[
            int | None, Query(alias="from", ge=1, description="Default: the revision before `to`.")
        ] = None,
        after: Annotated[
            int | None, Query(alias="to", ge=1, description="Default: the current revision.")
        ] = None,
    ) -> DiffInfo:
        return diff_info(service.diff(kind.name, name, before, after))

    @router.post(
        "/{name}/rollback",
        summary=f"Roll back to an earlier revision of {kind.one}",
        description="Saves the content of the earlier revision as a new revision.",
        operation_id=f"rollback{kind.name}",
        response_model=kind.info,
        responses={**accepted(kind), **failures(400, 403, 404, 409, 412, 413, 422)},
        openapi_extra=described(RollbackRequest.model_json_schema()),
    )
    def rollback(
        name: Name, raw: OneBody, response: Response, reset: ResetParameters, if_match: IfMatch = None
    ) -> Any:
        revision = _rollback_request(raw).revision
        result = service.rollback(kind.name, name, revision, expected=if_match, reset=reset)
        return shown_edit(service, kind, response, result)

    return router


def _rollback_request(raw: Any) -> RollbackRequest:
    try:
        return RollbackRequest.model_validate(raw)
    except ValidationError as error:
        raise Invalid(*problems_of(error, RollbackRequest)) from None
