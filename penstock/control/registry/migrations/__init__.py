"""The schema of the registry as numbered steps, applied when a registry is opened."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from penstock.control.registry.database import MIGRATION_LOCK, lock, writing
from penstock.errors import Conflict, Problem

# Alembic keeps the migration under way in module globals: one at a time in a process.
_alembic = threading.Lock()


def migrate(engine: Engine) -> None:
    """Brings the schema up to date, in one transaction that other processes wait for."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with writing(engine) as conn:
        lock(conn, MIGRATION_LOCK)
        current = MigrationContext.configure(conn).get_current_revision()
        if current == scripts.get_current_head():
            return
        if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
            raise Conflict(
                Problem(
                    code="registry_too_new",
                    message=f"this version of Penstock does not know the registry's schema {current}",
                    hint="use the version of Penstock that wrote it, or a later one",
                )
            )
        config.attributes["connection"] = conn
        with _alembic:
            command.upgrade(config, "head")
