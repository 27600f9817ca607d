"""Paths a user writes, local or on any file system Spark knows."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlparse

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_local(path: str) -> bool:
    """Whether a path is on this machine's file system."""
    return not _SCHEME.match(path) or path.startswith("file:")


def local_path(path: str) -> str:
    """The absolute path of a local one."""
    return os.path.abspath(unquote(urlparse(path).path) if path.startswith("file:") else path)


def qualified(path: str) -> str:
    """A path that means the same in every process: relative ones are made absolute."""
    return local_path(path) if is_local(path) else path
