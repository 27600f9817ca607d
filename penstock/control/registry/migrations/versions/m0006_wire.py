"""Workers on other machines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from penstock.control.registry.tables import UtcDateTime, Word

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Tokens of workers, the homes in which they store progress, and the home of each flow's progress."""
    op.add_column("workers", sa.Column("home", Word, nullable=False, server_default=""))
    op.add_column("workers", sa.Column("certificate", sa.Text()))
    op.add_column("flows", sa.Column("home", Word))
    op.execute("UPDATE flows SET home = '' WHERE epoch > 0")
    op.create_table(
        "worker_tokens",
        sa.Column("id", Word, primary_key=True),
        sa.Column("hash", Word, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
