"""Reading documents and revisions on a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, select

from penstock.control.registry.content import fold, storable
from penstock.control.registry.links import dependents_of, known_ids, suggestion
from penstock.control.registry.records import FlowState, Mark, Page, Record, Revision, Running, judged
from penstock.control.registry.tables import (
    documents,
    flow_phase,
    flow_place,
    flow_status,
    flows,
    labels,
    revisions,
)
from penstock.errors import Invalid, NotFound, Problem, did_you_mean
from penstock.specs.documents import NAME, RUNNABLE, derive_id

_DOCUMENT = (*documents.c, revisions.c.document)
_FLOW = (
    *(
        (flow_phase() if column.name == "phase" else column).label(f"flow_{column.name}")
        for column in flows.c
    ),
    flow_place().label("flow_queue_position"),
)
_SORTS: dict[str, ColumnElement[Any]] = {
    "name": documents.c.search_text,
    "id": documents.c.id,
    "created": documents.c.created_at,
    "updated": documents.c.updated_at,
    "status": flow_status(),
}


_BY_KIND = (documents.c.kind, documents.c.id)


def select_records() -> Select[Any]:
    """Documents with the content of their current revision and their flow."""
    current = and_(revisions.c.uid == documents.c.uid, revisions.c.revision == documents.c.revision)
    joined = documents.join(revisions, current).outerjoin(flows, flows.c.uid == documents.c.uid)
    return select(*_DOCUMENT, *_FLOW).select_from(joined)


def mark(conn: Connection) -> Mark:
    """A value that changes with any document."""
    about = select(func.count(), func.sum(documents.c.revision), func.max(documents.c.updated_at))
    return tuple(conn.execute(about).one())


def find(conn: Connection, kind: str, name: str) -> Record | None:
    """The document of that name or id, if it exists."""
    document_id = derive_id(name)
    if not NAME.fullmatch(document_id):
        return None
    row = conn.execute(
        select_records().where(documents.c.kind == kind, documents.c.id == document_id)
    ).first()
    return to_record(row) if row else None


def find_by_uid(conn: Connection, uid: str) -> Record | None:
    """The document with that uid, if it exists."""
    if not NAME.fullmatch(uid):
        return None
    row = conn.execute(select_records().where(documents.c.uid == uid)).first()
    return to_record(row) if row else None


def get(conn: Connection, kind: str, name: str) -> Record:
    """The document of that name or id; NotFound when there is none."""
    record = find(conn, kind, name)
    if record is None:
        message = f"there is no {kind.lower()} '{name}'"
        hint = suggestion(name, known_ids(conn, [kind])[kind])
        raise NotFound(Problem(code="not_found", message=message, hint=hint))
    return record


def search(
    conn: Connection,
    kind: str,
    *,
    text: str | None,
    status: str | None,
    label: Sequence[str],
    sort: str,
    limit: int | None,
    offset: int,
) -> Page:
    """The documents of a kind that match every given filter."""
    wanted = [documents.c.kind == kind]
    if text:
        wanted.append(documents.c.search_text.contains(fold(text), autoescape=True))
    if status:
        wanted.append(flow_status() == fold(status))
    wanted.extend(_has_label(each) for each in label)
    rows = select_records().where(*wanted)
    total = conn.scalar(select(func.count()).select_from(rows.with_only_columns(documents.c.uid).subquery()))
    page = conn.execute(rows.order_by(*_order(sort)).limit(limit).offset(offset))
    return Page(items=[to_record(row) for row in page], total=total or 0)


def dependents(conn: Connection, kind: str, document_id: str) -> list[Record]:
    """Every document that refers to the given one, directly or through others."""
    found = dependents_of(kind, document_id)
    rows = conn.execute(select_records().where(documents.c.uid.in_(select(found.c.uid))).order_by(*_BY_KIND))
    return [to_record(row) for row in rows]


def statuses(conn: Connection) -> dict[str, dict[str, str]]:
    """The status of every flow, by kind and name."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in RUNNABLE}
    rows = select(documents.c.kind, documents.c.name, flow_status().label("status"))
    for row in conn.execute(rows.join(flows, flows.c.uid == documents.c.uid).order_by(*_BY_KIND)):
        found[row.kind][row.name] = row.status
    return found


def running(conn: Connection) -> list[Running]:
    """Every flow, without its document."""
    rows = select(documents.c.kind, documents.c.name, *_FLOW).join(flows, flows.c.uid == documents.c.uid)
    return [Running(row.kind, row.name, _flow(row)) for row in conn.execute(rows.order_by(*_BY_KIND))]


def list_revisions(conn: Connection, uid: str) -> list[Revision]:
    """Every revision of a document, newest first."""
    rows = conn.execute(_select_revisions(uid).order_by(revisions.c.revision.desc()))
    return [Revision(**row._mapping) for row in rows]


def get_revision(conn: Connection, record: Record, number: int) -> Revision:
    """One revision of a document; NotFound if it doesn't exist."""
    if not 1 <= number <= record.revision:
        raise NotFound(
            Problem(
                code="not_found",
                message=f"{record.kind.lower()} '{record.name}' has no revision {number}",
                hint=f"the current revision is {record.revision}",
            )
        )
    row = conn.execute(_select_revisions(record.uid).where(revisions.c.revision == number)).one()
    return Revision(**row._mapping)


def to_record(row: Row[Any]) -> Record:
    """A row of `select_records` as a record."""
    values = row._mapping
    return Record(
        **{name: values[name] for name in ("uid", "kind", "id", "name", "revision", "document")},
        created_at=values["created_at"],
        updated_at=values["updated_at"],
        flow=_flow(row) if values["flow_uid"] is not None else None,
    )


def _flow(row: Row[Any]) -> FlowState:
    values = row._mapping
    names = (*(column.name for column in flows.c), "queue_position")
    state = {name: values[f"flow_{name}"] for name in names}
    return FlowState(**{**state, "error": judged(state["error"], state["ops"])})


def _select_revisions(uid: str) -> Select[Any]:
    columns = (revisions.c.revision, revisions.c.origin, revisions.c.created_at, revisions.c.document)
    return select(*columns).where(revisions.c.uid == uid)


def _has_label(label: str) -> ColumnElement[bool]:
    key, equals, value = storable(label).partition("=")
    wanted = [labels.c.uid == documents.c.uid, labels.c.key == key]
    if equals:
        wanted.append(labels.c.value == value)
    return select(labels.c.uid).where(*wanted).exists()


def _order(sort: str) -> list[ColumnElement[Any]]:
    column = _SORTS.get(sort.removeprefix("-"))
    if column is None:
        message = f"can't sort by '{sort}'"
        raise Invalid(Problem(code="unknown_sort", message=message, hint=did_you_mean(sort, _SORTS)))
    # The id makes the order total, so that pages neither repeat nor skip.
    return [column.desc(), documents.c.id.desc()] if sort.startswith("-") else [column, documents.c.id]
