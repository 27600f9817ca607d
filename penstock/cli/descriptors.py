"""The limit on open files of a process."""

from __future__ import annotations

import contextlib
import sys


def allow_many_files() -> None:
    """Raise the limit to the system's maximum: each stream needs several files, and 1,024 run out soon."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS reports a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
