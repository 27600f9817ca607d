"""Flows are placed by labels and load."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from penstock.control.registry.tables import Json

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Labels and capacity of workers; placement of flows, since when they run, and why they wait."""
    op.add_column("workers", sa.Column("labels", Json, nullable=False, server_default="{}"))
    op.add_column("workers", sa.Column("capacity", sa.Integer()))
    for name, kind in (
        ("placement", Json),
        ("since", sa.Double()),
        ("recalled_at", sa.Double()),
        ("tried", Json),
        ("wait_reason", Json),
    ):
        op.add_column("flows", sa.Column(name, kind))
