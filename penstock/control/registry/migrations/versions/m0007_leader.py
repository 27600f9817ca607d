"""Leader election among several servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from penstock.control.registry.tables import Word

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the lease of the server whose coordinator is active."""
    op.create_table(
        "leader",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("server", Word, nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
    )
