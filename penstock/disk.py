"""Disk errors as problems with a hint: full, read-only, no permission, or not a directory."""

from __future__ import annotations

import errno
from pathlib import Path

from penstock.errors import PenstockError, Problem, Unavailable

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def disk_problem(error: OSError) -> Problem | None:
    """The problem behind an error of the operating system, if the disk is the cause."""
    where = f"{error.filename}" if error.filename else "the disk"
    if error.errno in NO_ROOM:
        return Problem(
            code="disk_full",
            message=f"there is no room left: {where} could not be written",
            hint="free space on that volume; `df` shows how full it is",
        )
    if error.errno == errno.EROFS:
        return Problem(
            code="read_only",
            message=f"{where} is on a volume that is mounted read-only",
            hint="mount it for writing, or choose another home with --home or PENSTOCK_HOME",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return Problem(
            code="no_permission",
            message=f"this user may not write {where}",
            hint="run Penstock as the owner of that directory, or choose another home with --home",
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return Problem(
            code="not_a_directory",
            message=f"{where} is a file, and a directory is needed there",
            hint="move the file away, or choose another home with --home or PENSTOCK_HOME",
        )
    return None


def require_home(home: Path) -> None:
    """Create the data directory, and check that it is writable; Unavailable with the reason if not."""
    probe = home / ".writable"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x" * 4096)
    except OSError as error:
        if (problem := disk_problem(error)) is None:
            problem = Problem(code="home_failed", message=f"{home} cannot be used: {error.strerror}")
        raise Unavailable(problem) from None
    finally:
        _remove(probe)


def _remove(probe: Path) -> None:
    try:
        probe.unlink(missing_ok=True)
    except OSError:
        return


def refused_by_disk(error: OSError) -> PenstockError | None:
    """The error for a request that failed because of the disk; None if the disk is not the cause."""
    problem = disk_problem(error)
    return Unavailable(problem) if problem is not None else None
