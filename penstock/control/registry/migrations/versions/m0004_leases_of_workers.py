"""A flow has the lease of its worker."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A heartbeat writes the row of its worker, and none of its flows."""
    op.drop_column("flows", "lease_until")
