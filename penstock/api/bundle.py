"""Export and import of the whole registry as one file, and validation of unsaved documents."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import Field

from penstock.api.bodies import JSON, YAML, AllBody, described
from penstock.api.errors import Responses, failures
from penstock.api.views import ImportResult, Validation, View
from penstock.control.documents.import_progress import Imports
from penstock.control.documents.service import Service
from penstock.control.registry.bundle import Mode
from penstock.specs.text import to_json, to_yaml

_BUNDLE = {"$ref": "#/components/schemas/Bundle"}
_FILE: Responses = {
    200: {
        "description": "The bundle as a file.",
        "content": {media_type: {"schema": _BUNDLE} for media_type in (JSON, YAML)},
    }
}


_ID = r"^[A-Za-z0-9_-]{1,64}$"


class ImportProgress(View):
    """The progress of an import."""

    checked: int = Field(description="Number of documents that have been checked.")
    total: int = Field(description="Number of documents.")


def bundle_routes(service: Service) -> APIRouter:
    """The routes for export, import and validation."""
    router = APIRouter()
    imports = Imports()

    @router.get(
        "/bundle",
        tags=["bundle"],
        summary="Export every document",
        description="As JSON, or as YAML with `format=yaml` or `Accept: application/yaml`.",
        operation_id="exportBundle",
        response_class=Response,
        responses={**_FILE, **failures(422)},
    )
    def export(
        file_format: Annotated[
            Literal["json", "yaml"] | None, Query(alias="format", description="Format of the file.")
        ] = None,
        accept: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        chosen = file_format or ("yaml" if "yaml" in accept.lower() else "json")
        write, media_type = (to_yaml, YAML) if chosen == "yaml" else (to_json, JSON)
        disposition = f'attachment; filename="penstock-bundle.{chosen}"'
        headers = {"Content-Disposition": disposition, "Vary": "Accept"}
        return Response(write(service.export()), media_type=media_type, headers=headers)

    @router.post(
        "/bundle",
        tags=["bundle"],
        summary="Import every document of a bundle, or none",
        description="Accepts a bundle, a list of documents or several YAML documents. Nothing is saved "
        "unless all documents are valid.",
        operation_id="importBundle",
        responses=failures(400, 403, 409, 413, 422),
        openapi_extra=described({"$ref": "#/components/schemas/Documents"}),
    )
    def import_(
        documents: AllBody,
        mode: Annotated[
            Mode, Query(description="`replace` also deletes every document that is not in the bundle.")
        ] = "merge",
        dry_run: Annotated[bool, Query(description="Only report the changes.")] = False,
        accept_reset: Annotated[
            bool, Query(description="Accept that flows lose state or their position.")
        ] = False,
        id: Annotated[  # noqa: A002
            str | None,
            Query(pattern=_ID, description="An id of your choice, to get the progress while it runs."),
        ] = None,
    ) -> ImportResult:
        with imports.follow(id, len(documents)) as progress:
            changes = service.import_(
                documents, mode, dry_run=dry_run, accept_reset=accept_reset, progress=progress
            )
        return ImportResult(changes=changes, applied=not dry_run)

    @router.get(
        "/bundle/progress/{id}",
        tags=["bundle"],
        summary="Get the progress of an import",
        description="Null unless it runs. The documents are saved when all of them have been checked.",
        operation_id="getImportProgress",
        responses=failures(422),
    )
    def progress(
        id: Annotated[str, Path(description="The `id` of the import.", pattern=_ID)],  # noqa: A002
    ) -> ImportProgress | None:
        found = imports.get(id)
        if found is None:
            return None
        return ImportProgress(checked=found.checked(service.rpc), total=found.total)

    @router.post(
        "/validate",
        tags=["validate"],
        summary="Check documents without saving them",
        description="Accepts one document, a list of documents, a bundle or several YAML documents. They "
        "may refer to one another and to saved documents. Nothing is started or written.",
        operation_id="validateDocuments",
        responses=failures(400, 403, 413, 422),
        openapi_extra=described({"$ref": "#/components/schemas/Documents"}),
    )
    def validate(documents: AllBody) -> Validation:
        found = service.validate(documents)
        return Validation(valid=all(each.valid for each in found), documents=found)

    return router
