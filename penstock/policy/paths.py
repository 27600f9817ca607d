"""The files that a document may access.

A path is checked by its real location: links are followed, `..` and globs are resolved. It must be below one
of the roots, and must not be one of the files in which Penstock stores its own data.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")

STORES = frozenset({"s3", "s3a", "gs", "oss", "cosn", "obs", "az", "adl"})
"""Schemes of object stores: the URL contains the name of a bucket, and the server is configured elsewhere."""

HOSTED = frozenset(
    {"hdfs", "webhdfs", "swebhdfs", "http", "https", "ftp", "sftp", "abfs", "abfss", "wasb", "wasbs"}
)
"""Schemes of file systems whose server is part of the URL."""

MAGIC = re.compile(r"[*?\[{\\]")

MOST_ALTERNATIVES = 64
"""Maximum alternatives of a pattern such as `{a,b}`; a pattern with more is rejected."""


@dataclass(frozen=True)
class Paths:
    """The rules for local paths."""

    roots: tuple[str, ...] | None
    """Real paths of the directories below which files are allowed; None: anywhere."""
    reserved: tuple[str, ...] = ()
    """Real paths of Penstock's own files and directories."""

    def allows(self, text: str, *, files: bool = False) -> bool:
        """Whether a local path, or a `file:` URL, may be opened; `files`: with all files below it."""
        if self.roots is None:
            return True
        try:
            return all(self._allows(each, files=files) for each in _spellings(text))
        except (ValueError, OSError):  # a NUL byte, or a loop of links
            return False

    def _allows(self, path: str, *, files: bool) -> bool:
        fixed, pattern = _split(path)
        if ".." in pattern.split("/"):
            return False
        # The kernel follows a link before `..`; code that makes a path absolute first follows it after.
        if not all(self._inside(os.path.realpath(each)) for each in (fixed, os.path.abspath(fixed))):
            return False
        if pattern:
            found = glob.iglob(os.path.join(glob.escape(fixed), pattern.replace("[^", "[!")))
            return all(self._inside(os.path.realpath(each)) and self._below(each) for each in found)
        return not files or self._below(fixed)

    def _inside(self, real: str) -> bool:
        assert self.roots is not None
        return any(_is_below(real, root) for root in self.roots) and not any(
            _is_below(real, own) for own in self.reserved
        )

    def _below(self, directory: str) -> bool:
        """Whether all files of a directory may be read: no link leads outside, no file is Penstock's own."""
        for parent, names, files in os.walk(os.path.realpath(directory)):
            names[:] = [name for name in names if not _passed_over(name)]
            for path in (os.path.join(parent, name) for name in (*names, *files) if not _passed_over(name)):
                if not self._inside(os.path.realpath(path) if os.path.islink(path) else path):
                    return False
        return True


def scheme_of(path: str) -> str:
    """The scheme of a URL in lower case; empty for a local path."""
    found = SCHEME.match(path)
    return "" if found is None or found[1].lower() == "file" else found[1].lower()


def _passed_over(name: str) -> bool:
    """Whether Spark ignores a file or directory of this name."""
    return name.startswith((".", "_")) and "=" not in name


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _spellings(text: str) -> Iterator[str]:
    """The paths that readers may interpret `text` as, with each alternative of `{a,b}`."""
    texts = {text}
    if SCHEME.match(text):
        path = urlsplit(text).path
        texts = {path, unquote(path), text.partition(":")[2]}
    for each in texts | {os.path.expanduser(each) for each in texts}:
        for alternative in {*_alternatives(each), *_alternatives(each.replace("\\", ""))}:
            yield os.path.join(os.getcwd(), alternative)


def _alternatives(pattern: str) -> list[str]:
    found = [pattern]
    for _ in range(MOST_ALTERNATIVES):
        if not any(_innermost(each) for each in found):
            return found
        found = list(itertools.chain.from_iterable(map(_opened, found)))
        if len(found) > MOST_ALTERNATIVES:
            break
    raise ValueError("too many alternatives")


def _innermost(pattern: str) -> re.Match[str] | None:
    return re.search(r"\{([^{}]*)\}", pattern)


def _opened(pattern: str) -> list[str]:
    found = _innermost(pattern)
    if found is None:
        return [pattern]
    return [pattern[: found.start()] + each + pattern[found.end() :] for each in found[1].split(",")]


def _split(path: str) -> tuple[str, str]:
    """The fixed part of a path, and the part from the first pattern on."""
    parts = path.split("/")
    first = next((i for i, part in enumerate(parts) if MAGIC.search(part)), len(parts))
    return "/".join(parts[:first]) or "/", "/".join(parts[first:])
