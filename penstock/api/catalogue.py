"""The installed connectors and processors, each with the JSON Schema of its fields."""

from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.convertors import StringConvertor, register_url_convertor

from penstock.api.errors import failures
from penstock.api.views import View
from penstock.errors import NotFound, Problem, did_you_mean
from penstock.specs.base import Component
from penstock.specs.catalog import Role, catalog

Type = Annotated[str, Path(alias="type", description="The type, as used in documents.")]


class _ConnectorType(StringConvertor):
    """A connector type in a path, except `check` as in `/connectors/{type}/check`."""

    regex = "(?!check$)[^/]+"


register_url_convertor("connector", _ConnectorType())


class ComponentInfo(View):
    """A connector or a processor."""

    type: str
    role: Role
    summary: str = Field(default="", description="Summary in one sentence.")
    description: str = Field(default="", description="Full description.")
    guarantee: str | None = Field(
        default=None,
        description="Delivery guarantee: exactly-once, at-least-once or at-most-once.",
    )
    schema_: dict[str, Any] | None = Field(
        default=None, serialization_alias="schema", description="JSON Schema of the fields."
    )
    example: str = Field(default="", description="Example in YAML.")
    error: str | None = Field(default=None, description="Why the component is installed but can't be used.")


class ConnectorCatalogue(View):
    """Every connector."""

    sources: list[ComponentInfo]
    sinks: list[ComponentInfo]


def catalogue_routes() -> APIRouter:
    """The routes for the values of `type` in documents."""
    router = APIRouter(tags=["catalogue"])

    @router.get("/connectors", summary="List sources and sinks", operation_id="listConnectors")
    def connectors() -> ConnectorCatalogue:
        return ConnectorCatalogue(sources=_components("source"), sinks=_components("sink"))

    @router.get(
        "/connectors/{role}/{type:connector}",
        summary="Get a connector",
        operation_id="getConnector",
        responses=failures(404, 422),
    )
    def connector(role: Literal["source", "sink"], connector_type: Type) -> ComponentInfo:
        return _component(role, connector_type)

    @router.get("/processors", summary="List processors", operation_id="listProcessors")
    def processors() -> list[ComponentInfo]:
        return _components("processor")

    @router.get(
        "/processors/{type}",
        summary="Get a processor",
        operation_id="getProcessor",
        responses=failures(404, 422),
    )
    def processor(processor_type: Type) -> ComponentInfo:
        return _component("processor", processor_type)

    return router


@cache
def _components(role: Role) -> list[ComponentInfo]:
    found = catalog(role)
    usable = [_info(role, name, cls) for name, cls in found.classes.items()]
    broken = [ComponentInfo(type=name, role=role, error=error) for name, error in found.broken.items()]
    return sorted([*usable, *broken], key=lambda info: info.type)


def _component(role: Role, component_type: str) -> ComponentInfo:
    known = {info.type: info for info in _components(role)}
    if component_type not in known:
        raise NotFound(
            Problem(
                code="not_found",
                message=f"there is no {role} of type '{component_type}'",
                hint=did_you_mean(component_type, known),
            )
        )
    return known[component_type]


def _info(role: Role, name: str, cls: type[Component]) -> ComponentInfo:
    description = cleandoc(cls.__doc__ or "")
    return ComponentInfo(
        type=name,
        role=role,
        summary=_first_sentence(description),
        description=description,
        guarantee=getattr(cls, "guarantee", None),
        schema_=cls.model_json_schema(by_alias=True),
        example=cls.example,
    )


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + "." if stop else sentence
