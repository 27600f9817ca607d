"""Documents, revisions, references, flows, workers and events."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Word = sa.String().with_variant(sa.String(collation="C"), "postgresql")
Json = sa.JSON()
Moment = sa.DateTime(timezone=True)
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates every table."""
    op.create_table(
        "documents",
        sa.Column("uid", Word, primary_key=True),
        sa.Column("kind", Word, nullable=False),
        sa.Column("id", Word, nullable=False),
        sa.Column("name", Word, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("search_text", Word, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.UniqueConstraint("kind", "id", name="uq_documents_kind_id"),
    )
    op.create_table(
        "labels",
        _owner("uid"),
        sa.Column("key", Word, nullable=False),
        sa.Column("value", Word, nullable=False),
    )
    op.create_index("ix_labels_uid", "labels", ["uid"])
    op.create_table(
        "revisions",
        _owner("uid", primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("document", Json, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
    )
    op.create_table(
        "refs",
        _owner("from_uid", primary_key=True),
        sa.Column("path", Word, primary_key=True),
        sa.Column("to_kind", Word, primary_key=True),
        sa.Column("to_id", Word, primary_key=True),
    )
    op.create_index("ix_refs_to", "refs", ["to_kind", "to_id"])
    op.create_table(
        "flows",
        _owner("uid", primary_key=True),
        sa.Column("id", Word, nullable=False),
        sa.Column("desired", Word, nullable=False),
        sa.Column("outcome", Word),
        sa.Column("phase", Word, nullable=False),
        sa.Column("error", Json),
        sa.Column("attempts", Json, nullable=False),
        sa.Column("worker", Word),
        sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
        sa.Column("lease_until", sa.Double),
        sa.Column("running_revision", sa.Integer),
        sa.Column("ops", Json, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.UniqueConstraint("id", name="uq_flows_id"),
    )
    op.create_index("ix_flows_worker", "flows", ["worker"])
    op.create_index("ix_flows_desired", "flows", ["desired", "outcome"])
    op.create_table(
        "workers",
        sa.Column("id", Word, primary_key=True),
        sa.Column("host", Word, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("url", Word, nullable=False),
        sa.Column("token", Word, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("heartbeat_until", sa.Double, nullable=False),
        sa.Column("state", Word, nullable=False),
        sa.Column("info", Json, nullable=False),
    )
    op.create_index("ix_workers_heartbeat_until", "workers", ["heartbeat_until"])
    op.create_table(
        "events",
        sa.Column("id", Serial, primary_key=True, autoincrement=True),
        sa.Column("at", Moment, nullable=False),
        sa.Column("kind", Word, nullable=False),
        sa.Column("name", Word, nullable=False),
        sa.Column("type", Word, nullable=False),
        sa.Column("data", Json, nullable=False),
        sqlite_autoincrement=True,
    )


def _owner(column: str, **options: Any) -> sa.Column[Any]:
    owner = sa.ForeignKey("documents.uid", ondelete="CASCADE")
    return sa.Column(column, Word, owner, nullable=False, **options)
