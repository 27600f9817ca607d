"""The files of the web app, as its build wrote them.

Imports little: these files are served before the rest of the server is loaded.
"""

from __future__ import annotations

import mimetypes
import os
import stat
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

import penstock
from penstock.api.accept import quality

BUILT = Path(penstock.__file__).parent / "ui"
"""Where `make web` writes the app; a wheel carries it."""

HASHED = "assets/"
"""Below it every file has its checksum in its name, so it never changes, and a missing one is no page."""

HEADERS = {
    # Styles: the components write theirs into the page. Workers: editors start theirs from a blob.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

_PACKED = (("br", ".br"), ("gzip", ".gz"), (None, ""))

# What a machine's own table says of scripts may be wrong, and browsers would refuse to run them.
mimetypes.add_type("text/javascript", ".js")


class WebFiles(StaticFiles):
    """Files of one directory and nothing outside it, packed if they are there packed and the client can."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)

    def find(self, path: str, request: Request) -> Response | None:
        """The file at a path, or else the page of the app."""
        if found := self._packed(path, request):
            fixed = path.startswith(HASHED)
            found.headers["Cache-Control"] = "public, max-age=31536000, immutable" if fixed else "no-cache"
            return found
        return None if path.startswith(HASHED) or path == "index.html" else self.find("index.html", request)

    def _packed(self, path: str, request: Request) -> Response | None:
        accepted = request.headers.get("accept-encoding", "")
        for encoding, suffix in _PACKED:
            if encoding and not quality(accepted, encoding, "*"):
                continue
            if found := self._file(path + suffix):
                response = self.file_response(*found, request.scope)
                response.headers.add_vary_header("Accept-Encoding")
                if encoding:
                    response.headers["Content-Encoding"] = encoding
                return response
        return None

    def _file(self, path: str) -> tuple[str, os.stat_result] | None:
        try:
            full, found = self.lookup_path(path)
        except (OSError, ValueError):  # no name that a file could have
            return None
        return (full, found) if found and stat.S_ISREG(found.st_mode) else None
