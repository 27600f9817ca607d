"""Bundles: export and import of the whole registry as one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, select

from penstock.control.registry import changes, content, queries
from penstock.control.registry.links import require_known
from penstock.control.registry.records import Change, DiffEntry, JsonObject, Record
from penstock.control.registry.tables import flows
from penstock.errors import Invalid, Problem
from penstock.specs.documents import API_VERSION, KINDS, runs
from penstock.specs.references import INPUT, made_stream

Mode = Literal["merge", "replace"]


@dataclass(frozen=True)
class Entry:
    """One document of a bundle. `desired` is None if the bundle doesn't set a status."""

    index: int
    kind: str
    id: str
    name: str
    document: JsonObject
    desired: str | None


@dataclass(frozen=True)
class Plan:
    """The plan of an import: entries to save over documents of the same id, and documents to delete."""

    saves: list[tuple[Entry, Record | None]]
    deletes: list[Record]

    def changes(self) -> list[Change]:
        """The changes of the plan, for display."""
        deleted = [Change("delete", record.kind, record.id, record.name) for record in self.deletes]
        return [_change(entry, record) for entry, record in self.saves] + deleted


def export(conn: Connection) -> JsonObject:
    """Every document, each after the documents it refers to."""
    found = sorted(records(conn).values(), key=lambda record: (KINDS.index(record.kind), record.id))
    return {"apiVersion": API_VERSION, "kind": "Bundle", "documents": [_exported(each) for each in found]}


def parse(documents: Sequence[JsonObject]) -> list[Entry]:
    """The entries of a bundle; Invalid with the problems of all of them."""
    entries: dict[tuple[str, str], Entry] = {}
    problems: list[Problem] = []
    for index, given in enumerate(documents):
        try:
            entry = _entry(index, given)
        except Invalid as error:
            problems.extend(in_bundle(index, given, problem) for problem in error.problems)
            continue
        first = entries.setdefault((entry.kind, entry.id), entry)
        if first is not entry:
            message = f"the bundle has this document twice, also as document {first.index + 1}"
            problem = Problem(code="duplicate", message=message, path="metadata.name")
            problems.append(in_bundle(index, given, problem))
    if problems:
        raise Invalid(*problems)
    return list(entries.values())


def plan(conn: Connection, entries: Sequence[Entry], mode: Mode) -> Plan:
    """Plan the import of entries into the registry as it is now.

    Invalid if an entry would refer to a document that does not exist after the import. Documents whose flow
    is not active may have such references, as everywhere else.
    """
    present = records(conn)
    known: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, document_id in present if mode == "merge" else ():
        known[kind].add(document_id)
    for entry in entries:
        known[entry.kind].add(entry.id)
    entries = [*entries, *_made(entries, known, present)]
    known["Stream"] |= {pipeline + INPUT for pipeline in known["Pipeline"]}
    saves = [(entry, present.pop((entry.kind, entry.id), None)) for entry in entries]
    active = [entry for entry, record in saves if _desired(entry, record) == "active"]
    problems = []
    for entry in active:
        try:
            require_known([("", entry.document)], known)
        except Invalid as error:
            problems += [in_bundle(entry.index, entry.document, problem) for problem in error.problems]
    if problems:
        raise Invalid(*problems)
    return Plan(saves, list(present.values()) if mode == "replace" else [])


def apply(conn: Connection, entries: Sequence[Entry], mode: Mode) -> list[Change]:
    """Imports the entries."""
    # Many flows change here: locking them in one order avoids deadlocks with similar transactions.
    conn.execute(select(flows.c.uid).order_by(flows.c.uid).with_for_update())
    planned = plan(conn, entries, mode)
    for record in planned.deletes:
        changes.remove(conn, record)
    new = []
    for entry, present in planned.saves:
        desired = _desired(entry, present)
        if present is None:
            new.append(changes.Addition(entry.kind, entry.id, entry.name, entry.document, desired))
        else:
            changes.replace(conn, present, entry.name, entry.document, desired, "import")
    changes.add(conn, new, "import")
    return planned.changes()


def _entry(index: int, given: JsonObject) -> Entry:
    document, desired = content.split_status(content.as_json(given))
    return Entry(index, *content.identity(document), document, desired)


def _change(entry: Entry, record: Record | None) -> Change:
    if record is None:
        return Change("create", entry.kind, entry.id, entry.name)
    diff = list(content.differences(record.document, entry.document))
    if record.flow and runs(entry.document) and record.flow.desired != _desired(entry, record):
        diff.append(DiffEntry("status", "replace", record.flow.desired, entry.desired))
    return Change("update" if diff else "unchanged", entry.kind, entry.id, entry.name, diff)


def _made(
    entries: Sequence[Entry], known: dict[str, set[str]], present: Mapping[tuple[str, str], Record]
) -> Iterator[Entry]:
    """The streams that sources auto-create and no entry defines. Existing streams are left unchanged."""
    for entry in entries:
        made = made_stream(entry.document)
        if made is None:
            continue
        kind, document_id, _ = content.identity(made)
        if document_id not in known[kind]:
            known[kind].add(document_id)
            document = present[kind, document_id].document if (kind, document_id) in present else made
            yield Entry(entry.index, *content.identity(document), document, None)


def _desired(entry: Entry, record: Record | None) -> str:
    """The desired status; a document without a flow counts as active: its references must exist."""
    if not runs(entry.document):
        return "active"
    return entry.desired or (record.flow.desired if record and record.flow else "active")


def records(conn: Connection) -> dict[tuple[str, str], Record]:
    """Every document by its kind and id."""
    found = [queries.to_record(row) for row in conn.execute(queries.select_records())]
    return {(record.kind, record.id): record for record in found}


def _exported(record: Record) -> JsonObject:
    return {**record.document, "status": record.flow.desired} if record.flow else record.document


def in_bundle(index: int, given: object, problem: Problem) -> Problem:
    """A problem of a document, extended by the document's kind and name and its position in the bundle."""
    place = f"documents[{index}]"
    path = f"{place}.{problem.path}" if problem.path else place
    return problem.model_copy(update={"path": path, "message": f"{_title(index, given)}: {problem.message}"})


def _title(index: int, given: object) -> str:
    """Kind and name of a document, such as `pipeline 'orders'`; its number, from 1, if either is missing."""
    metadata = given.get("metadata") if isinstance(given, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    kind = given.get("kind") if isinstance(given, Mapping) else None
    return f"{str(kind).lower()} '{name}'" if kind and name else f"document {index + 1}"
