"""The built files of the web app.

Has few imports: these files are served before the rest of the server is loaded.
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
"""The directory to which `make web` writes the app; included in wheels."""

HASHED = "assets/"
"""Files below this path have a checksum in their name, so they never change; a missing one is not a page."""

HEADERS = {
    # Styles: the components write theirs into the page. Workers: editors start theirs from a blob.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

_PACKED = (("br", ".br"), ("gzip", ".gz"), (None, ""))

# The machine's own table may have a wrong type for scripts, and browsers would refuse to run them.
mimetypes.add_type("text/javascript", ".js")


class WebFiles(StaticFiles):
    """Files of one directory only, compressed if a compressed file exists and the client supports it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)

    def find(self, path: str, request: Request) -> Response | None:
        """The file at a path, or the page of the app if there is no such file."""
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
        except (OSError, ValueError):  # not a valid file name
            return None
        return (full, found) if found and stat.S_ISREG(found.st_mode) else None
