"""Flows that make no progress."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Failed attempts since the last successful batch, and since when a backlog grows without a batch."""
    op.add_column("flows", sa.Column("failed_attempts", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("flows", sa.Column("stalled_since", sa.Double()))
