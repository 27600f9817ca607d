"""Errors of the registry's database, as problems with a hint for fixing them."""

from __future__ import annotations

import sqlite3

from penstock.disk import disk_problem
from penstock.errors import Problem

_RESTORE = (
    "stop Penstock and restore registry.db from a backup, or `sqlite3 registry.db .recover` into a new one"
)


def registry_problem(error: BaseException) -> Problem | None:
    """The problem behind an error of SQLAlchemy or the disk, if the registry's file is the cause."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return disk_problem(cause)
    if not isinstance(cause, sqlite3.Error):
        return None
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        message = f"the registry is damaged: {cause}"
        return Problem(code="registry_damaged", message=message, path="registry.url", hint=_RESTORE)
    if code == sqlite3.SQLITE_FULL:
        message = "there is no room left for the registry; nothing was saved"
        return Problem(code="disk_full", message=message, hint="free space on the volume of the home")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        message = f"this user may not write the registry: {cause}"
        hint = "run Penstock as the owner of the home, and on a volume that is mounted for writing"
        return Problem(code="no_permission", message=message, path="registry.url", hint=hint)
    return None
