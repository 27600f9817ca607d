"""How many files a process may have open."""

from __future__ import annotations

import contextlib
import sys


def allow_many_files() -> None:
    """Take what the system grants: every log of a stream needs some, and 1,024 are soon used up."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS names a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
