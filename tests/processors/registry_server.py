"""A small schema registry over HTTP, as Confluent's answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.http_server import Asked, Said, http_server


@dataclass
class RegistryServer:
    """Schemas by id, the latest id of each subject, and what was asked."""

    url: str = ""
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    status: int = 200
    """Anything but 200 is an outage or a refusal."""

    def answer(self, request: Asked) -> Said:
        self.asked.append(request.path)
        if self.status != 200:
            return Said({"error_code": self.status, "message": "no"}, self.status)
        match request.path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return Said({"schema": self.schemas[int(number)]})
            case ["subjects", name, "versions", "latest"] if name in self.subjects:
                id = self.subjects[name]
                return Said({"subject": name, "version": 1, "id": id, "schema": self.schemas[id]})
        return Said({"error_code": 40403, "message": "Schema not found"}, 404)


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    """A registry that lives as long as the block."""
    state = RegistryServer()
    with http_server(state.answer) as state.url:
        yield state
