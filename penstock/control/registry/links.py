"""References between documents, and the rules that keep them from dangling."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import CTE, Connection, and_, or_, select

from penstock.control.registry.records import JsonObject, Record, Referrer, Versions
from penstock.control.registry.tables import documents, refs
from penstock.errors import Conflict, Invalid, Problem, nearest
from penstock.specs.documents import KINDS, NAME, derive_id
from penstock.specs.references import INPUT, references_of


def reference_rows(uid: str, document: JsonObject) -> list[JsonObject]:
    """The rows of the references in the content of a document."""
    # Text that is not a valid id can't be a reference: no document can have that id.
    found = {(ref.path, ref.kind, ref.id) for ref in references_of(document) if NAME.fullmatch(ref.id)}
    return [
        {"from_uid": uid, "path": path, "to_kind": kind, "to_id": document_id}
        for path, kind, document_id in sorted(found)
    ]


def referrers(conn: Connection, kind: str, name: str) -> list[Referrer]:
    """The documents that refer to a document, sorted by kind and id, except the document itself."""
    document_id = derive_id(name)
    if not NAME.fullmatch(document_id):
        return []
    named = and_(refs.c.to_kind == kind, refs.c.to_id == document_id)
    if kind == "Pipeline":
        named = or_(named, and_(refs.c.to_kind == "Stream", refs.c.to_id == document_id + INPUT))
    rows = conn.execute(
        select(documents.c.kind, documents.c.id, documents.c.name, refs.c.path)
        .join(refs, refs.c.from_uid == documents.c.uid)
        .where(named)
        .where(~and_(documents.c.kind == kind, documents.c.id == document_id))
        .order_by(documents.c.kind, documents.c.id, refs.c.path)
    )
    return [Referrer(**row._mapping) for row in rows]


def versions(conn: Connection, uids: Collection[str]) -> dict[str, Versions]:
    """For each given document, the versions of all documents it refers to, directly or through others."""
    named = and_(documents.c.kind == refs.c.to_kind, documents.c.id == refs.c.to_id)
    reached = (
        select(refs.c.from_uid.label("origin"), documents.c.uid, documents.c.revision)
        .join(documents, named)
        .where(refs.c.from_uid.in_(uids))
        .cte("reached", recursive=True)
    )
    further = (
        select(reached.c.origin, documents.c.uid, documents.c.revision)
        .select_from(reached)
        .join(refs, refs.c.from_uid == reached.c.uid)
        .join(documents, named)
    )
    found: dict[str, set[tuple[str, int]]] = {uid: set() for uid in uids}
    for row in conn.execute(select(reached.union(further))):
        found[row.origin].add((row.uid, row.revision))
    return {uid: frozenset(each) for uid, each in found.items()}


def dependents_of(kind: str, document_id: str) -> CTE:
    """The documents that refer to the given one, directly or indirectly, with columns `uid`, `kind`, `id`."""
    who = (documents.c.uid, documents.c.kind, documents.c.id)
    found = (
        select(*who)
        .join(refs, refs.c.from_uid == documents.c.uid)
        .where(refs.c.to_kind == kind, refs.c.to_id == document_id)
        .cte("found", recursive=True)
    )
    further = (
        select(*who)
        .join(refs, refs.c.from_uid == documents.c.uid)
        .join(found, and_(refs.c.to_kind == found.c.kind, refs.c.to_id == found.c.id))
    )
    return found.union(further)


def known_ids(conn: Connection, kinds: Collection[str] = KINDS) -> dict[str, set[str]]:
    """The ids that can be referred to, by kind: those of all documents, and pipeline inputs as streams."""
    asked = {*kinds, "Pipeline"} if "Stream" in kinds else {*kinds}
    ids: dict[str, set[str]] = {kind: set() for kind in asked}
    for row in conn.execute(select(documents.c.kind, documents.c.id).where(documents.c.kind.in_(asked))):
        ids[row.kind].add(row.id)
    if "Stream" in kinds:
        ids["Stream"] |= {pipeline + INPUT for pipeline in ids["Pipeline"]}
    return {kind: ids[kind] for kind in kinds}


def require_unreferenced(conn: Connection, record: Record) -> None:
    """Conflict, with all referrers, if other documents refer to the document."""
    found = referrers(conn, record.kind, record.id)
    if found:
        raise Conflict(
            *(
                Problem(
                    code="referenced",
                    message=f"{referrer.kind.lower()} '{referrer.name}' refers to it",
                    path=referrer.path,
                    hint=f"change or delete {referrer.kind.lower()} '{referrer.id}' first",
                )
                for referrer in found
            )
        )


def require_references(conn: Connection, document: JsonObject) -> None:
    """Invalid unless all references of a document exist."""
    kinds = {reference.kind for reference in references_of(document)}
    if kinds:
        require_known([("", document)], known_ids(conn, kinds))


def require_known(checked: Iterable[tuple[str, JsonObject]], known: Mapping[str, Collection[str]]) -> None:
    """Invalid unless all references of the documents, each with a prefix for its paths, are known ids."""
    problems = [
        Problem(
            code="unknown_reference",
            message=f"there is no {reference.kind.lower()} '{reference.id}'",
            path=f"{prefix}{reference.path}",
            hint=suggestion(reference.id, known[reference.kind]),
        )
        for prefix, document in checked
        for reference in references_of(document)
        if reference.id not in known[reference.kind]
    ]
    if problems:
        raise Invalid(*problems)


def suggestion(name: str, ids: Iterable[str]) -> str | None:
    """A hint with the most similar id."""
    close = nearest(derive_id(name), ids)
    return f"did you mean '{close}'?" if close else None
