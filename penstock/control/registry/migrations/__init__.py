"""The schema of the registry as numbered migrations, applied when a registry is opened."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from penstock.control.registry.database import MIGRATION_LOCK, lock, writing
from penstock.errors import Conflict, Problem

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0010"
"""The newest migration in `versions`. A constant, because Alembic is slow to import and rarely needed."""

# Alembic stores the current migration in module globals: one at a time per process.
_alembic = threading.Lock()


def migrate(engine: Engine) -> None:
    """Bring the schema up to date, in one transaction that other processes wait for."""
    with engine.connect() as conn:
        if _version(conn) == HEAD:
            return
    with writing(engine) as conn:
        lock(conn, MIGRATION_LOCK)
        current = _version(conn)  # another process may have been faster
        if current == HEAD:
            return
        _upgrade(conn, current)


def _version(conn: Connection) -> str | None:
    """The schema version of a database; None for an empty database."""
    if not inspect(conn).has_table("alembic_version"):
        return None
    version = conn.scalar(text("SELECT version_num FROM alembic_version"))
    return None if version is None else str(version)


def _upgrade(conn: Connection, current: str | None) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise Conflict(
            Problem(
                code="registry_too_new",
                message=f"this version of Penstock doesn't support schema version {current} of the registry",
                hint="use the version of Penstock that created it, or a later version",
            )
        )
    config.attributes["connection"] = conn
    with _alembic:
        command.upgrade(config, "head")


def configuration() -> Config:
    """The Alembic configuration that locates the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
