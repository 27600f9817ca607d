"""Files of a step: read where the flow is planned, so that every task gets the same content."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import Invalid, Problem


def read_file(path: str, field: str) -> bytes:
    """The content of a file; raises `Invalid` at `field` if it cannot be read."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        hint = "relative paths are resolved against the working directory of the worker"
        raise Invalid(Problem(code="unreadable_file", message=message, path=field, hint=hint)) from None
