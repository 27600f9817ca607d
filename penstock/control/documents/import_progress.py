"""The progress of bundle imports, for clients that wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import Conflict, Problem

if TYPE_CHECKING:
    from penstock.control.fleet.assignments import WorkerInfo
    from penstock.control.questions.rpc import RpcClient


@dataclass
class Checking:
    """The validation of documents: first in this process, then by a worker if they need Spark."""

    id: str
    total: int
    here: int = 0
    """Documents that are validated without a worker."""
    worker: WorkerInfo | None = None
    """The worker that validates the other documents."""

    def checked(self, rpc: RpcClient) -> int:
        """Documents validated so far."""
        there = rpc.analysed(self.worker, self.id) if self.worker is not None else 0
        return min(self.total, self.here + there)


class Imports:
    """The imports in progress on this server, by an id that the client has chosen."""

    def __init__(self) -> None:
        self._under_way: dict[str, Checking] = {}

    @contextmanager
    def follow(self, import_id: str | None, total: int) -> Iterator[Checking | None]:
        """Track the progress of an import under its id while it runs; Conflict if the id is in use."""
        if import_id is None:
            yield None
            return
        checking = Checking(import_id, total)
        if self._under_way.setdefault(import_id, checking) is not checking:
            message = f"an import with the id '{import_id}' is running"
            raise Conflict(Problem(code="import_exists", message=message, path="id"))
        try:
            yield checking
        finally:
            del self._under_way[import_id]

    def get(self, import_id: str) -> Checking | None:
        """An import in progress; None if there is none with this id, or it has finished."""
        return self._under_way.get(import_id)
