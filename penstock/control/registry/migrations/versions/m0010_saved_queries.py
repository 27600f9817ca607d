"""Saved queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from penstock.control.registry.tables import UtcDateTime, Word

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add a table for SQL over streams that users have saved under a name."""
    op.create_table(
        "saved_queries",
        sa.Column("name", Word, primary_key=True),
        sa.Column("sql", sa.Text(), nullable=False),
        sa.Column("user", Word),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
