"""A small schema registry over HTTP, as Confluent's answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class RegistryServer:
    """Schemas by id, the latest id of each subject, and what was asked."""

    url: str = ""
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    status: int = 200
    """Anything but 200 is an outage or a refusal."""

    def answer(self, path: str) -> tuple[int, Any]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, {"error_code": self.status, "message": "no"}
        match path.strip("/").split("/"):
            case ["schemas", "ids", id] if int(id) in self.schemas:
                return 200, {"schema": self.schemas[int(id)]}
            case ["subjects", name, "versions", "latest"] if name in self.subjects:
                id = self.subjects[name]
                return 200, {"subject": name, "version": 1, "id": id, "schema": self.schemas[id]}
        return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """A registry that lives as long as the block."""
    state = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = state.answer(self.path)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
