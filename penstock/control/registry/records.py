"""The records that the registry returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

JsonObject = dict[str, Any]

Mark = tuple[Any, ...]
"""A value that is equal to an earlier one if nothing has changed since."""

Versions = frozenset[tuple[str, int]]
"""The versions of documents at one time: uid and revision of each."""


@dataclass(frozen=True)
class FlowState:
    """The runtime state of a runnable document: one row of `flows`."""

    uid: str
    id: str
    desired: str
    outcome: str | None
    phase: str
    ticket: int | None
    error: JsonObject | None
    attempts: list[Any]
    worker: str | None
    epoch: int
    running_revision: int | None
    ops: JsonObject
    updated_at: datetime
    placement: dict[str, str] | None = None
    """Labels that the flow's worker must have."""
    since: float | None = None
    """When the flow was assigned to its worker or its phase changed, by the registry's clock."""
    recalled_at: float | None = None
    """When the worker was asked to release the flow, by the registry's clock."""
    tried: list[str] | None = None
    """Workers that have failed to start the flow in time since it last ran."""
    wait_reason: JsonObject | None = None
    """Why the flow can't be assigned to any worker."""
    home: str | None = None
    """The home that stores the flow's progress; empty: the server's; None: no progress yet."""
    failed_attempts: int = 0
    """Failed attempts since the last successful batch."""
    stalled_since: float | None = None
    """Since when the backlog has grown without a finished batch; set only after `monitor.stalled_ms`."""
    queue_position: int | None = None
    """Position among the flows of the worker that wait for their turn to start; 1 is next."""

    @property
    def status(self) -> str:
        """The outcome of a flow that should be active and has ended, else the desired status."""
        return self.outcome if self.desired == "active" and self.outcome else self.desired

    @property
    def waits_for(self) -> JsonObject | None:
        """Why the flow can't be assigned to any worker, while it should run and has no worker."""
        return self.wait_reason if self.worker is None and self.status == "active" else None


def judged(error: JsonObject | None, ops: JsonObject | None) -> JsonObject | None:
    """An error of a flow, marked as `recovered` if the flow has processed a batch since."""
    at, good_at = (error or {}).get("at"), (ops or {}).get("good_at")
    return {**(error or {}), "recovered": True} if at and good_at and at <= good_at else error


@dataclass(frozen=True)
class Record:
    """A document at its current revision."""

    uid: str
    kind: str
    id: str
    name: str
    revision: int
    document: JsonObject
    created_at: datetime
    updated_at: datetime
    flow: FlowState | None = None

    @property
    def etag(self) -> str:
        """The HTTP entity tag of this revision, unique to this document even if its name is reused."""
        return f'"{self.uid[:8]}-{self.revision}"'


@dataclass(frozen=True)
class Running:
    """A flow and the identity of its document, without the content."""

    kind: str
    name: str
    flow: FlowState


@dataclass(frozen=True)
class Page:
    """A page of a list, and the length of the whole list."""

    items: Sequence[Record]
    total: int


@dataclass(frozen=True)
class Revision:
    """One saved state of a document. Never changes."""

    revision: int
    origin: str
    created_at: datetime
    document: JsonObject


@dataclass(frozen=True)
class Referrer:
    """A document that refers to another one, and the path of the reference."""

    kind: str
    id: str
    name: str
    path: str


@dataclass(frozen=True)
class Event:
    """A change of a document, a flow or a worker."""

    id: int
    at: datetime
    kind: str
    name: str
    type: str
    data: JsonObject


@dataclass(frozen=True)
class DiffEntry:
    """One field that differs between two documents."""

    path: str
    op: Literal["add", "remove", "replace"]
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class Diff:
    """The differences between two documents: field by field, and as text."""

    entries: Sequence[DiffEntry]
    text: str


@dataclass(frozen=True)
class Change:
    """The effect of an import on one document."""

    action: Literal["create", "update", "delete", "unchanged"]
    kind: str
    id: str
    name: str
    diff: Sequence[DiffEntry] = ()
