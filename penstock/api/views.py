"""The views of documents of any kind in the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from penstock.control.registry.records import Change, Diff, DiffEntry, Record, Referrer, Revision
from penstock.engine.plan.analysis import Analysis
from penstock.errors import Problem


class View(BaseModel):
    """A part of a response: every field is always present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class MetadataInfo(View):
    """The metadata of a document."""

    name: str
    description: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class DocumentInfo(View):
    """A document at its current revision."""

    name: str
    id: str = Field(description="Derived from the name; can't be changed later.")
    kind: str
    metadata: MetadataInfo
    spec: Any = Field(description="The saved spec.")
    revision: int
    created_at: datetime
    updated_at: datetime
    referrers: list[Referrer] | None = Field(
        default=None, description="Documents that refer to this one; null in lists."
    )
    warnings: list[Problem] | None = Field(
        default=None, description="Warnings about the revision just saved; null if nothing was saved."
    )


class DocumentPage(View):
    """A page of a list of documents."""

    items: list[DocumentInfo]
    total: int
    limit: int
    offset: int


class RevisionSummary(View):
    """One saved state of a document."""

    revision: int
    origin: str = Field(
        description="Origin of the revision: create, update, patch, import, rollback to N, or rollback to "
        "N: M did not start."
    )
    created_at: datetime


class RevisionInfo(RevisionSummary):
    """One saved state of a document, with its content."""

    document: dict[str, Any]


class DiffInfo(View):
    """The differences between two revisions: field by field, and as text."""

    entries: Sequence[DiffEntry]
    text: str


class ImportResult(View):
    """The changes that an import made, or would make."""

    changes: Sequence[Change]
    applied: bool


class Validation(View):
    """The results of validating documents without running them."""

    valid: bool = Field(description="Whether all documents can be saved as active.")
    documents: list[Analysis] = Field(description="In request order.")


def document_info(
    record: Record, *, referrers: list[Referrer] | None = None, warnings: list[Problem] | None = None
) -> DocumentInfo:
    """The view of a document."""
    return DocumentInfo(**common_fields(record), kind=record.kind, referrers=referrers, warnings=warnings)


def revision_summary(revision: Revision) -> RevisionSummary:
    """The view of a revision in a list."""
    return RevisionSummary(revision=revision.revision, origin=revision.origin, created_at=revision.created_at)


def revision_info(revision: Revision) -> RevisionInfo:
    """The view of a revision."""
    return RevisionInfo(**vars(revision))


def diff_info(diff: Diff) -> DiffInfo:
    """The view of the differences between two revisions."""
    return DiffInfo(entries=diff.entries, text=diff.text)


def common_fields(record: Record) -> dict[str, Any]:
    """The fields that the views of all kinds share."""
    return {
        "name": record.name,
        "id": record.id,
        "metadata": MetadataInfo.model_validate(record.document["metadata"]),
        "spec": record.document.get("spec"),
        "revision": record.revision,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
