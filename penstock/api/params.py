"""Parameters that routes of several modules share, and the rejection of unknown parameters."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Header, Path, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import AwareDatetime, BaseModel, BeforeValidator

from penstock.errors import Invalid, Problem, did_you_mean

Name = Annotated[str, Path(description="Name or id.", min_length=1, max_length=128)]
IfMatch = Annotated[str | None, Header(description="ETag of the revision that the change is based on.")]


def _is_written_out(value: Any) -> Any:
    """Reject numbers, which pydantic interprets as seconds since 1970."""
    if isinstance(value, str) and value.replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("not a time in ISO 8601")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_is_written_out)]
"""A time in ISO 8601 with a time zone."""

ANY_PARAMETERS = ("/ui", "/session/oidc/callback")
"""Paths whose query string is defined by the web app or the OpenID Connect provider."""


async def known_parameters(request: Request) -> None:
    """Reject query parameters that the route does not declare: `?dryrun=true` must not apply a bundle."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    if route.path.startswith(ANY_PARAMETERS):
        return
    known = _declared(route)
    problems = [
        Problem(
            code="unknown_parameter",
            message=f"there is no parameter '{name}' here",
            path=name,
            hint=did_you_mean(name, known) if known else "this route has no parameters",
        )
        for name in dict.fromkeys(request.query_params)
        if name not in known
    ]
    if problems:
        raise Invalid(*problems)


def _declared(route: APIRoute) -> set[str]:
    """The query parameters of a route, as declared in the OpenAPI document."""
    by_hand = (route.openapi_extra or {}).get("parameters", [])
    return {*_names(route.dependant), *(each["name"] for each in by_hand if each["in"] == "query")}


def _names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (found.alias or name for name, found in model.model_fields.items())
        else:
            yield field.alias
    for needed in dependant.dependencies:
        yield from _names(needed)
