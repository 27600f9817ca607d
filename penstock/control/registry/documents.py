"""Read-only access to the documents of a registry: from the database, or over HTTP."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Protocol

from penstock.control.registry.records import Mark, Page, Record, Revision, Versions


class Documents(Protocol):
    """Read-only access to the documents of a registry; see `Registry`."""

    def mark(self) -> Mark:
        """A value that is equal to an earlier one if no document has changed since."""

    def get(self, kind: str, name: str) -> Record:
        """The document of that name or id; NotFound when there is none."""

    def find(self, kind: str, name: str) -> Record | None:
        """The document of that name or id, if it exists."""

    def find_by_uid(self, uid: str) -> Record | None:
        """The document with that uid, if it exists."""

    def list(self, kind: str, *, limit: int | None = 100) -> Page:
        """The documents of a kind."""

    def ids(self, kind: str) -> set[str]:
        """The ids of all documents of a kind."""

    def versions(self, uids: Sequence[str]) -> dict[str, Versions]:
        """For each given document, the versions of all documents that it refers to."""

    def revisions(self, kind: str, name: str) -> builtins.list[Revision]:
        """Every revision of a document, newest first."""

    def dependents(self, kind: str, document_id: str) -> builtins.list[Record]:
        """Every document that refers to the given one, directly or through others."""
