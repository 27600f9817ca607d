"""Flows wait for their turn to start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a ticket for waiting flows: the lowest ticket of a worker is next."""
    op.add_column("flows", sa.Column("ticket", sa.BigInteger))
