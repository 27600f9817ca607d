"""The limit of open files of a process."""

from __future__ import annotations

import contextlib
import sys


def allow_many_files() -> None:
    """Raise the limit to the maximum: every stream's log needs several files, and 1,024 are soon used up."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS reports a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
