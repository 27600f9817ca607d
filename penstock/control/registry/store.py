"""The registry: documents with immutable revisions, the references between them, and their flows."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine

from penstock.control.registry import bundle, changes, content, database, events, links, queries
from penstock.control.registry.migrations import migrate
from penstock.control.registry.records import (
    Change,
    Diff,
    Event,
    JsonObject,
    Mark,
    Page,
    Record,
    Referrer,
    Revision,
    Running,
    Versions,
)
from penstock.errors import Conflict, Problem


class Registry:
    """Documents in a database that several threads and processes share.

    Every method is one transaction. A thread that is inside `begin()` must not call any of them: on
    SQLite, the writer would wait for itself.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.edits = 0
        """Incremented by every document change in this process, so that caches notice the change at once."""
        self._mutex = threading.Lock()

    @classmethod
    def open(cls, url: str) -> Registry:
        """The registry at a URL, created or migrated as needed."""
        engine = database.connect(url)
        try:
            migrate(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()

    def begin(self) -> AbstractContextManager[Connection]:
        """A connection in a write transaction; events emitted on it are committed with it."""
        return events.writing(self.engine)

    @property
    def shared(self) -> bool:
        """Whether several servers can share this registry."""
        return database.is_shared(self.engine)

    def now(self, conn: Connection) -> float:
        """The time by the clock that all processes of this registry share, in seconds since 1970."""
        return database.now(conn)

    # Documents

    def mark(self) -> Mark:
        """A value that is equal to an earlier one if no document has changed since; no document is parsed."""
        with self.engine.connect() as conn:
            return queries.mark(conn)

    def get(self, kind: str, name: str) -> Record:
        """The document of that name or id; NotFound when there is none."""
        with self.engine.connect() as conn:
            return queries.get(conn, kind, name)

    def find(self, kind: str, name: str) -> Record | None:
        """The document of that name or id, if it exists."""
        with self.engine.connect() as conn:
            return queries.find(conn, kind, name)

    def find_by_uid(self, uid: str) -> Record | None:
        """The document with that uid, if it exists."""
        with self.engine.connect() as conn:
            return queries.find_by_uid(conn, uid)

    def list(
        self,
        kind: str,
        *,
        search: str | None = None,
        status: str | None = None,
        label: Sequence[str] = (),
        sort: str = "name",
        limit: int | None = 100,
        offset: int = 0,
    ) -> Page:
        """The documents of a kind that match every filter.

        `search` looks in name, id and description; each of `label` is `key` or `key=value`; `sort` is
        name, id, created, updated or status, with `-` before it for descending.
        """
        with self.engine.connect() as conn:
            return queries.search(
                conn, kind, text=search, status=status, label=label, sort=sort, limit=limit, offset=offset
            )

    def records(self) -> dict[tuple[str, str], Record]:
        """Every document by its kind and id: one query."""
        with self.engine.connect() as conn:
            return bundle.records(conn)

    def ids(self, kind: str) -> set[str]:
        """The ids of all documents of a kind."""
        with self.engine.connect() as conn:
            return links.known_ids(conn, [kind])[kind]

    def create(
        self,
        document: JsonObject,
        *,
        desired: str | None = None,
        origin: str = "create",
        check_references: bool = True,
    ) -> Record:
        """Saves a new document; with `check_references`, all documents it refers to must exist.

        `desired` is the status of its flow: by default the status in the document, else `active`.
        """
        document, status = content.split_status(content.as_json(document))
        kind, document_id, name = content.identity(document)
        with self._changing() as conn:
            existing = queries.find(conn, kind, document_id)
            if existing:
                raise name_in_use(existing)
            changes.add_made_stream(conn, document)
            new = changes.Addition(kind, document_id, name, document, desired or status or "active")
            changes.add(conn, [new], origin)
            if check_references:
                links.require_references(conn, document)
            return queries.get(conn, kind, document_id)

    def update(
        self,
        kind: str,
        name: str,
        document: JsonObject,
        *,
        expected: str | None = None,
        desired: str | None = None,
        origin: str = "update",
        check_references: bool = True,
    ) -> Record:
        """Saves a new revision, unless the content is the same.

        `expected` is an ETag or a revision number, as in `If-Match`. A new revision restarts the flow:
        its outcome, error and attempts are cleared. A document that becomes runnable gets a flow; the flow
        of a document that is no longer runnable is removed.
        """
        document, status = content.split_status(content.as_json(document))
        with self._changing() as conn:
            record = queries.get(conn, kind, name)
            changes.require_current(record, expected)
            return self._replace(conn, record, document, desired or status, origin, check_references)

    def delete(self, kind: str, name: str, *, expected: str | None = None) -> Record:
        """Deletes a document that nothing refers to, and returns it."""
        with self._changing() as conn:
            record = queries.get(conn, kind, name)
            changes.require_current(record, expected)
            links.require_unreferenced(conn, record)
            changes.remove(conn, record)
            return record

    def referrers(self, kind: str, document_id: str) -> builtins.list[Referrer]:
        """The referrers of a document, with their paths."""
        with self.engine.connect() as conn:
            return links.referrers(conn, kind, document_id)

    def require_unreferenced(self, record: Record) -> None:
        """Conflict, with all referrers, if other documents refer to the document."""
        with self.engine.connect() as conn:
            links.require_unreferenced(conn, record)

    def dependents(self, kind: str, document_id: str) -> builtins.list[Record]:
        """Every document that refers to the given one, directly or through others."""
        with self.engine.connect() as conn:
            return queries.dependents(conn, kind, document_id)

    def versions(self, uids: Collection[str]) -> dict[str, Versions]:
        """For each given document, the versions of all documents it refers to, directly or indirectly."""
        with self.engine.connect() as conn:
            return links.versions(conn, uids)

    def statuses(self) -> dict[str, dict[str, str]]:
        """The status of every flow, by kind and name."""
        with self.engine.connect() as conn:
            return queries.statuses(conn)

    def running(self) -> builtins.list[Running]:
        """Every flow, in one query."""
        with self.engine.connect() as conn:
            return queries.running(conn)

    # Revisions

    def revisions(self, kind: str, name: str) -> builtins.list[Revision]:
        """Every revision of a document, newest first."""
        with self.engine.connect() as conn:
            return queries.list_revisions(conn, queries.get(conn, kind, name).uid)

    def revision(self, kind: str, name: str, number: int) -> Revision:
        """One revision of a document."""
        with self.engine.connect() as conn:
            return queries.get_revision(conn, queries.get(conn, kind, name), number)

    def diff(self, kind: str, name: str, before: int, after: int) -> Diff:
        """The differences between revisions `before` and `after` of a document."""
        with self.engine.connect() as conn:
            record = queries.get(conn, kind, name)
            old, new = (queries.get_revision(conn, record, number).document for number in (before, after))
        return content.diff(old, new, (f"revision {before}", f"revision {after}"))

    def rollback(
        self,
        kind: str,
        name: str,
        number: int,
        *,
        expected: str | None = None,
        check_references: bool = True,
        error: JsonObject | None = None,
        holder: tuple[str, int] | None = None,
    ) -> Record:
        """Saves the content of an old revision as the newest revision.

        `error` is the reason if the current revision did not start; it is shown with the rollback. With
        `holder`, a worker and an epoch, the rollback is rejected unless that worker holds the flow
        (invariant 6).
        """
        with self._changing() as conn:
            record = queries.get(conn, kind, name)
            changes.require_holder(conn, record, holder)
            changes.require_current(record, expected)
            document = queries.get_revision(conn, record, number).document
            origin = f"rollback to {number}"
            if error is not None:
                origin += f": {record.revision} did not start"
            saved = self._replace(conn, record, document, None, origin, check_references)
            if error is None:
                return saved
            changes.rolled_back(conn, record.uid, error)
            return queries.get(conn, kind, saved.id)

    # Bundles

    def export(self) -> JsonObject:
        """The whole registry as a bundle."""
        with self.engine.connect() as conn:
            return bundle.export(conn)

    def plan_import(
        self, documents: Sequence[JsonObject], mode: bundle.Mode = "merge"
    ) -> builtins.list[Change]:
        """The changes that `apply_import` would make."""
        with self.engine.connect() as conn:
            return bundle.plan(conn, bundle.parse(documents), mode).changes()

    def apply_import(
        self, documents: Sequence[JsonObject], mode: bundle.Mode = "merge"
    ) -> builtins.list[Change]:
        """Creates and updates the given documents, all or none; `replace` deletes all others."""
        parsed = bundle.parse(documents)
        with self._changing() as conn:
            return bundle.apply(conn, parsed, mode)

    # Events

    def emit(
        self, conn: Connection, kind: str, name: str, event: str, data: JsonObject | None = None
    ) -> None:
        """Records an event with the transaction of a connection from `begin()`."""
        events.emit(conn, kind, name, event, data)

    def events_after(self, last_id: int, limit: int = 1000) -> builtins.list[Event]:
        """The events that follow `last_id`, oldest first."""
        with self.engine.connect() as conn:
            return events.events_after(conn, last_id, limit)

    def last_event_id(self) -> int:
        """The id of the newest event, 0 before the first."""
        with self.engine.connect() as conn:
            return events.last_event_id(conn)

    def first_event_id(self) -> int:
        """The id of the oldest retained event, 0 before the first."""
        with self.engine.connect() as conn:
            return events.first_event_id(conn)

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        try:
            with self.begin() as conn:
                database.lock(conn, database.DOCUMENTS_LOCK)
                yield conn
        finally:
            with self._mutex:
                self.edits += 1  # after the commit: later reads include the change

    def _replace(
        self,
        conn: Connection,
        record: Record,
        document: JsonObject,
        desired: str | None,
        origin: str,
        check_references: bool,
    ) -> Record:
        kind, document_id, name = changes.require_same(record, document)
        changes.add_made_stream(conn, document)
        if check_references:
            links.require_references(conn, document)
        changes.replace(conn, record, name, document, desired, origin)
        return queries.get(conn, kind, document_id)


def name_in_use(existing: Record) -> Conflict:
    """The error for a new document whose id belongs to an existing one."""
    return Conflict(
        Problem(
            code="name_in_use",
            message=f"{existing.kind.lower()} '{existing.name}' already has the id '{existing.id}'",
            path="metadata.name",
            hint="choose another name, or update the existing document",
        )
    )
