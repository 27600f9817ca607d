"""The functions that SQL may call, for users who write SQL."""

from fastapi import APIRouter

from penstock.control.documents.service import Service
from penstock.control.questions.sql_functions import ask
from penstock.sql.described import FunctionInfo


def function_routes(service: Service) -> APIRouter:
    """The route for functions."""
    router = APIRouter(tags=["catalogue"])

    @router.get(
        "/functions",
        summary="List SQL functions",
        description="Spark functions that steps and queries may call, with Spark's descriptions. They are "
        "listed by a worker: without a ready worker the response is 503.",
        operation_id="listFunctions",
    )
    def functions() -> list[FunctionInfo]:
        return ask(service)

    return router
