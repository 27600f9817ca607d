"""Flows wait for their turn to start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """A flow that waits has a ticket: the lowest of a worker is the next."""
    op.add_column("flows", sa.Column("ticket", sa.BigInteger))
