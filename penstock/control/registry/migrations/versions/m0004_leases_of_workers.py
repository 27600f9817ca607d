"""Flows share the lease of their worker."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Drop leases of flows: a heartbeat writes only the row of its worker."""
    op.drop_column("flows", "lease_until")
