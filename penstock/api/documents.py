"""Reading and changing documents: the same routes for every kind."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from penstock.api.bodies import JSON, YAML, OneBody, described
from penstock.api.edits import MERGE, ResetParameters, accepted, shown_edit
from penstock.api.errors import failures
from penstock.api.kinds import Filters, Kind
from penstock.api.params import IfMatch, Name
from penstock.control.documents.service import Service
from penstock.control.registry.records import Record

_WRITE = (400, 403, 412, 413, 422)


def document_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of one kind for reading and changing documents."""
    router = APIRouter(prefix=f"/{kind.place}", tags=[kind.place])
    body = {"$ref": f"#/components/schemas/{kind.name}Document"}

    def shown(response: Response, record: Record, **details: Any) -> BaseModel:
        response.headers["ETag"] = record.etag
        return kind.shown(service, record, **details)

    @router.get(
        "",
        summary=f"List {kind.many}",
        operation_id=f"list{kind.name}s",
        response_model=kind.page,
        responses=failures(422),
    )
    def list_(filters: Annotated[Filters, Depends(kind.filters)]) -> Any:
        page = service.list(kind.name, **filters.model_dump())
        items = [kind.show(record) for record in page.items]
        return kind.page(items=items, total=page.total, limit=filters.limit, offset=filters.offset)

    @router.post(
        "",
        summary=f"Create {kind.one}",
        operation_id=f"create{kind.name}",
        status_code=201,
        response_model=kind.info,
        responses=failures(400, 403, 409, 413, 422),
        openapi_extra=described(body),
    )
    def create(raw: OneBody, response: Response) -> Any:
        result = service.create(kind.name, raw)
        response.headers["Location"] = kind.url(result.record.name)
        return shown(response, result.record, warnings=result.warnings)

    @router.get(
        "/{name}",
        summary=f"Get {kind.one}",
        operation_id=f"get{kind.name}",
        response_model=kind.info,
        responses=failures(404, 422),
    )
    def get(name: Name, response: Response) -> Any:
        record = service.get(kind.name, name)
        if not kind.shared:
            return shown(response, record)
        return shown(response, record, referrers=service.registry.referrers(kind.name, record.id))

    @router.put(
        "/{name}",
        summary=f"Replace {kind.one}",
        operation_id=f"replace{kind.name}",
        response_model=kind.info,
        responses={**accepted(kind), **failures(404, 409, *_WRITE)},
        openapi_extra=described(body),
    )
    def replace(
        name: Name, raw: OneBody, response: Response, reset: ResetParameters, if_match: IfMatch = None
    ) -> Any:
        result = service.replace(kind.name, name, raw, expected=if_match, reset=reset)
        return shown_edit(service, kind, response, result)

    @router.patch(
        "/{name}",
        summary=f"Change parts of {kind.one}",
        description="A JSON merge patch of the document, or of its spec alone: null removes a field, "
        "mappings are merged, any other value replaces the old one.",
        operation_id=f"patch{kind.name}",
        response_model=kind.info,
        responses={**accepted(kind), **failures(404, 409, *_WRITE)},
        openapi_extra=described({"type": "object"}, MERGE, JSON, YAML),
    )
    def patch(
        name: Name, changes: OneBody, response: Response, reset: ResetParameters, if_match: IfMatch = None
    ) -> Any:
        result = service.patch(kind.name, name, changes, expected=if_match, reset=reset)
        return shown_edit(service, kind, response, result)

    @router.delete(
        "/{name}",
        summary=f"Delete {kind.one}",
        operation_id=f"delete{kind.name}",
        status_code=204,
        responses=failures(403, 404, 409, 412, 422),
    )
    def delete(name: Name, if_match: IfMatch = None) -> None:
        service.delete(kind.name, name, expected=if_match)

    return router
