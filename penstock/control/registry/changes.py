"""Changing documents on a connection: each function is a part of one transaction.

Every caller holds the documents lock, so a check still holds when its change commits: no lost update, no
dangling reference.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, delete, insert, select, update

from penstock.control.registry.content import fold, identity, same, storable
from penstock.control.registry.events import emit
from penstock.control.registry.links import reference_rows
from penstock.control.registry.records import JsonObject, Record
from penstock.control.registry.tables import documents, flows, labels, refs, revisions
from penstock.errors import Invalid, PreconditionFailed, Problem
from penstock.specs.documents import required_labels, runs, what_runs
from penstock.specs.references import made_stream


@dataclass(frozen=True)
class Addition:
    """A new document, and the desired status of its flow."""

    kind: str
    id: str
    name: str
    document: JsonObject
    desired: str


def add(conn: Connection, additions: Sequence[Addition], origin: str) -> None:
    """Add new documents, each at revision 1, with a fixed number of statements."""
    at = datetime.now(UTC)
    rows: dict[Table, list[JsonObject]] = {table: [] for table in (documents, revisions, refs, labels, flows)}
    for new in additions:
        uid, document = str(uuid.uuid4()), new.document
        text = _search_text(new.id, new.name, document)
        named = {"uid": uid, "kind": new.kind, "id": new.id, "name": new.name, "revision": 1}
        rows[documents].append({**named, "search_text": text, "created_at": at, "updated_at": at})
        rows[revisions].append(_revision(uid, 1, document, origin, at))
        rows[refs] += reference_rows(uid, document)
        rows[labels] += _label_rows(uid, document)
        if runs(document):
            rows[flows].append({**_flow(uid, document, new.id, new.desired, at), "epoch": 0})
        emit(conn, new.kind, new.name, "created", {"id": new.id, "uid": uid, "revision": 1, "origin": origin})
    for table, found in rows.items():
        if found:
            conn.execute(insert(table), found)


def add_made_stream(conn: Connection, document: JsonObject) -> None:
    """Add the stream that a source auto-creates, unless it exists."""
    made = made_stream(document)
    if made is not None:
        kind, document_id, name = identity(made)
        exists = select(documents.c.uid).where(documents.c.kind == kind, documents.c.id == document_id)
        if conn.scalar(exists) is None:
            add(conn, [Addition(kind, document_id, name, made, "active")], "auto_create")


def replace(
    conn: Connection, record: Record, name: str, document: JsonObject, desired: str | None, origin: str
) -> None:
    """Replace the content and the desired status of a document; without `desired` the status is unchanged."""
    if not same(document, record.document):
        _revise(conn, record, name, document, desired or "active", origin)
    if desired and record.flow and record.flow.desired != desired and runs(document):
        changed = {"desired": desired, "updated_at": datetime.now(UTC)}
        conn.execute(update(flows).where(flows.c.uid == record.uid).values(**changed))
        emit(conn, record.kind, record.name, "updated", _summary(record, desired=desired))


def _revise(
    conn: Connection, record: Record, name: str, document: JsonObject, desired: str, origin: str
) -> None:
    """Add a revision. The flow restarts with the revision, unless the change does not affect the run.

    `desired` applies to a document that had no flow.
    """
    uid, revision, at = record.uid, record.revision + 1, datetime.now(UTC)
    text = _search_text(record.id, name, document)
    conn.execute(
        update(documents)
        .where(documents.c.uid == uid)
        .values(name=name, revision=revision, search_text=text, updated_at=at)
    )
    _save_content(conn, uid, revision, document, origin, at)
    if not runs(document):
        _cease(conn, uid)
    elif record.flow is None:
        _begin(conn, uid, document, record.id, desired, at)
    elif same(what_runs(document), what_runs(record.document)):
        # Only the tests or the placement differ: the flow counts as running the new revision, without a
        # restart.
        current = and_(flows.c.uid == uid, flows.c.running_revision == record.revision)
        conn.execute(update(flows).where(current).values(running_revision=revision))
        placed = {"placement": required_labels(document), "wait_reason": None}
        conn.execute(update(flows).where(flows.c.uid == uid).values(**placed))
    else:
        over: JsonObject = {"outcome": None, "error": None, "attempts": [], "updated_at": at, "tried": None}
        over |= {"failed_attempts": 0, "stalled_since": None}
        over |= {"placement": required_labels(document), "wait_reason": None}
        conn.execute(update(flows).where(flows.c.uid == uid).values(**over))
    emit(conn, record.kind, name, "updated", _summary(record, revision=revision, origin=origin))


def remove(conn: Connection, record: Record) -> None:
    """Delete a document with its revisions, references, labels and flow."""
    conn.execute(delete(documents).where(documents.c.uid == record.uid))
    emit(conn, record.kind, record.name, "deleted", _summary(record, revision=record.revision))


def require_current(record: Record, expected: str | None) -> None:
    """PreconditionFailed unless `expected` (as in `If-Match`) names the current revision."""
    if expected is None:
        return
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in expected.split(",")}
    if tags.isdisjoint({"*", str(record.revision), record.etag.strip('"')}):
        raise PreconditionFailed(
            Problem(
                code="stale_revision",
                message=f"{record.kind.lower()} '{record.name}' is now at revision {record.revision}",
                hint="read the document again and repeat the change",
            )
        )


def require_holder(conn: Connection, record: Record, holder: tuple[str, int] | None) -> None:
    """PreconditionFailed unless the worker holds the flow under this epoch; locks it for the transaction."""
    if holder is None:
        return
    worker, epoch = holder
    held = and_(flows.c.uid == record.uid, flows.c.worker == worker, flows.c.epoch == epoch)
    if conn.scalar(select(flows.c.uid).where(held).with_for_update()) is None:
        message = f"worker {worker} no longer has {record.kind.lower()} '{record.name}' under epoch {epoch}"
        raise PreconditionFailed(Problem(code="fenced", message=message))


def rolled_back(conn: Connection, uid: str, error: JsonObject) -> None:
    """Record a rollback: an earlier revision is in effect, with no further revision to fall back to."""
    conn.execute(update(flows).where(flows.c.uid == uid).values(running_revision=None, error=error))


def _begin(
    conn: Connection, uid: str, document: JsonObject, document_id: str, desired: str, at: datetime
) -> None:
    """Add a flow for a document that becomes runnable, for the first time or again."""
    epoch = select(documents.c.last_epoch).where(documents.c.uid == uid).scalar_subquery()
    conn.execute(insert(flows).values(epoch=epoch, **_flow(uid, document, document_id, desired, at)))


def _flow(uid: str, document: JsonObject, document_id: str, desired: str, at: datetime) -> JsonObject:
    """The row of a flow that has not run yet, without its epoch."""
    state = {"phase": "starting", "attempts": [], "ops": {}, "updated_at": at}
    placed = {"id": document_id, "desired": desired, "placement": required_labels(document)}
    return {"uid": uid, **placed, **state}


def _cease(conn: Connection, uid: str) -> None:
    """Remove the flow of a document. The worker notices and stops the run; the checkpoint is retained."""
    epoch = conn.scalar(delete(flows).where(flows.c.uid == uid).returning(flows.c.epoch))
    if epoch is not None:
        conn.execute(update(documents).where(documents.c.uid == uid).values(last_epoch=epoch))


def require_same(record: Record, document: JsonObject) -> tuple[str, str, str]:
    """Kind, id and name of a new revision; Invalid if the kind or id would change."""
    kind, document_id, name = identity(document)
    if kind != record.kind:
        raise Invalid(
            Problem(code="kind_changed", message=f"'{record.name}' is a {record.kind}", path="kind")
        )
    if document_id != record.id:
        raise Invalid(
            Problem(
                code="id_changed",
                message=f"the name must keep the id '{record.id}', which can't be changed later",
                path="metadata.name",
                hint="create another document, or change only upper and lower case or spaces",
            )
        )
    return kind, document_id, name


def _save_content(
    conn: Connection, uid: str, revision: int, document: JsonObject, origin: str, at: datetime
) -> None:
    conn.execute(insert(revisions), [_revision(uid, revision, document, origin, at)])
    conn.execute(delete(refs).where(refs.c.from_uid == uid))
    conn.execute(delete(labels).where(labels.c.uid == uid))
    for table, rows in ((refs, reference_rows(uid, document)), (labels, _label_rows(uid, document))):
        if rows:
            conn.execute(insert(table), rows)


def _revision(uid: str, revision: int, document: JsonObject, origin: str, at: datetime) -> JsonObject:
    return {"uid": uid, "revision": revision, "document": document, "origin": origin, "created_at": at}


def _label_rows(uid: str, document: JsonObject) -> list[JsonObject]:
    given = document["metadata"].get("labels")
    if not isinstance(given, dict):
        return []
    return [{"uid": uid, "key": _text(key), "value": _text(value)} for key, value in given.items()]


def _search_text(document_id: str, name: str, document: JsonObject) -> str:
    return fold(f"{name}\n{document_id}\n{_text(document['metadata'].get('description'))}")


def _text(value: Any) -> str:
    return "" if value is None else storable(str(value))


def _summary(record: Record, **data: Any) -> JsonObject:
    return {"id": record.id, "uid": record.uid, **data}
