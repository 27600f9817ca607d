"""Flows of tasks, sources and sinks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

documents = sa.table("documents", *map(sa.column, ("uid", "kind", "id", "revision")))
revisions = sa.table(
    "revisions", sa.column("uid"), sa.column("revision"), sa.column("document", sa.JSON(none_as_null=True))
)
flows = sa.table(
    "flows",
    *map(sa.column, ("uid", "id", "desired", "phase", "epoch")),
    sa.column("attempts", sa.JSON()),
    sa.column("ops", sa.JSON()),
    sa.column("updated_at", sa.DateTime(timezone=True)),
)


def upgrade() -> None:
    """Make ids unique only within their kind; store the last epoch of a document's flows."""
    with op.batch_alter_table("flows") as table:
        table.drop_constraint("uq_flows_id", type_="unique")
    op.add_column("documents", sa.Column("last_epoch", sa.Integer, nullable=False, server_default="0"))
    _add_flows()


def _add_flows() -> None:
    """Add stopped flows for documents that were saved before their kind could run."""
    conn, at = op.get_bind(), datetime.now(UTC)
    current = sa.and_(revisions.c.uid == documents.c.uid, revisions.c.revision == documents.c.revision)
    rows = sa.select(documents.c.uid, documents.c.kind, documents.c.id, revisions.c.document)
    state = {"desired": "stopped", "phase": "starting", "epoch": 0, "attempts": [], "ops": {}}
    found = [
        {"uid": row.uid, "id": row.id, **state, "updated_at": at}
        for row in conn.execute(rows.join(revisions, current))
        if _runs(row.kind, row.document.get("spec"))
    ]
    if found:
        conn.execute(sa.insert(flows), found)


def _runs(kind: str, spec: Any) -> bool:
    if not isinstance(spec, Mapping):
        return False
    if kind == "Task":
        return bool(spec.get("input")) and bool(spec.get("outputs"))
    return kind in ("Source", "Sink") and bool(spec.get("stream"))
