"""Paths in documents: local, or on any file system that Spark supports."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlparse

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_local(path: str) -> bool:
    """Whether a path is on this machine's file system."""
    return not _SCHEME.match(path) or path.startswith("file:")


def local_path(path: str) -> str:
    """The absolute form of a local path."""
    return os.path.abspath(unquote(urlparse(path).path) if path.startswith("file:") else path)


def qualified(path: str) -> str:
    """A path that means the same in every process: relative paths are made absolute."""
    return local_path(path) if is_local(path) else path
