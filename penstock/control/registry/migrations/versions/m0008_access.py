"""Users, sessions, tokens and the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from penstock.control.registry.tables import Json, Serial, UtcDateTime, Word

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Permissions and the audit trail. Tokens of workers become tokens with the role `worker`."""
    op.create_table(
        "users",
        sa.Column("name", Word, primary_key=True),
        sa.Column("role", Word, nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("subject", Word),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_login_at", UtcDateTime),
        sa.UniqueConstraint("subject", name="uq_users_subject"),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", Word, primary_key=True),
        _user(nullable=False),
        sa.Column("via", Word, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_sessions_user", "sessions", ["user"])
    op.create_table(
        "tokens",
        sa.Column("id", Word, primary_key=True),
        sa.Column("hash", Word, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", Word, nullable=False),
        sa.Column("source", Word),
        _user(nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
    )
    op.create_index("ix_tokens_user", "tokens", ["user"])
    op.execute(
        "INSERT INTO tokens (id, hash, name, role, created_at)"
        " SELECT id, hash, note, 'worker', created_at FROM worker_tokens"
    )
    op.drop_table("worker_tokens")
    op.create_table(
        "audit",
        sa.Column("id", Serial, primary_key=True, autoincrement=True),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("user", Word),
        sa.Column("via", Word),
        sa.Column("address", Word),
        sa.Column("action", Word, nullable=False),
        sa.Column("target", Word, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("before", Json),
        sa.Column("after", Json),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])


def _user(*, nullable: bool) -> sa.Column[str]:
    return sa.Column("user", Word, sa.ForeignKey("users.name", ondelete="CASCADE"), nullable=nullable)
