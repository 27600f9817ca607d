"""The six kinds of documents in the API: their paths, and how they are listed and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel, Field, JsonValue

from penstock.api.pipes import (
    PipeInfo,
    PipelinePage,
    RunnableInfo,
    RunnablePage,
    Status,
    pipe_info,
    runnable_info,
)
from penstock.api.views import DocumentInfo, DocumentPage, document_info
from penstock.control.documents.service import Service
from penstock.control.registry.records import Record
from penstock.control.streams.acknowledgement import acknowledgement

_SORTS: list[JsonValue] = ["name", "-name", "id", "-id", "created", "-created", "updated", "-updated"]


class Filters(BaseModel):
    """Filters and order of a list of documents."""

    search: str | None = Field(
        default=None, description="Only documents with this text in name, id or description."
    )
    label: list[str] = Field(
        default_factory=list, description="`key` or `key=value`; if repeated, all must match."
    )
    sort: str = Field(
        default="name",
        description="Sort order; prefix with `-` to reverse it.",
        json_schema_extra={"enum": _SORTS},
    )
    limit: int = Field(default=100, ge=1, le=1000, description="Maximum number of results.")
    offset: int = Field(default=0, ge=0, le=2**31 - 1, description="Number of results to skip.")


class RunnableFilters(Filters):
    """Filters and order of a list of documents of a runnable kind."""

    status: Status | None = Field(default=None, description="Only documents with this status.")
    sort: str = Field(
        default="name",
        description="Sort order; prefix with `-` to reverse it.",
        json_schema_extra={"enum": [*_SORTS, "status", "-status"]},
    )


def _filters(given: Annotated[Filters, Query()]) -> Filters:
    return given


def _runnable_filters(given: Annotated[RunnableFilters, Query()]) -> Filters:
    return given


@dataclass(frozen=True)
class Kind:
    """A kind of document, with its path in the API."""

    name: str
    place: str
    info: type[BaseModel] = DocumentInfo
    page: type[BaseModel] = DocumentPage
    show: Callable[..., Any] = document_info
    filters: Callable[..., Filters] = _filters
    runs: bool = False
    shared: bool = True
    """Whether other documents can refer to documents of this kind."""

    def url(self, name: str) -> str:
        """The URL of a document."""
        return f"/{self.place}/{quote(name)}"

    def shown(self, service: Service, record: Record, **details: Any) -> BaseModel:
        """The view of a single document, with fields that lists omit."""
        if self.runs:
            details["guarantee"] = acknowledgement(service, record)
        info: BaseModel = self.show(record, **details)
        return info

    @property
    def one(self) -> str:
        """The singular of the kind with an article, for sentences."""
        return f"a {self.name.lower()}"

    @property
    def many(self) -> str:
        """The plural of the kind, for sentences."""
        return self.place


def _runnable(name: str, place: str) -> Kind:
    return Kind(name, place, RunnableInfo, RunnablePage, runnable_info, _runnable_filters, runs=True)


KINDS = (
    Kind(
        "Pipeline",
        "pipelines",
        PipeInfo,
        PipelinePage,
        pipe_info,
        _runnable_filters,
        runs=True,
        shared=False,
    ),
    Kind("Stream", "streams"),
    _runnable("Source", "sources"),
    _runnable("Task", "tasks"),
    _runnable("Sink", "sinks"),
    Kind("Secret", "secrets"),
)
