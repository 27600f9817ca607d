"""How far the imports of bundles are, for clients that wait for them."""

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
    """The check of some documents: first here, then by a worker those that Spark has to see."""

    id: str
    total: int
    here: int = 0
    """Documents that are checked without a worker."""
    worker: WorkerInfo | None = None
    """Who checks the others."""

    def checked(self, rpc: RpcClient) -> int:
        """Documents that are checked so far."""
        there = rpc.analysed(self.worker, self.id) if self.worker is not None else 0
        return min(self.total, self.here + there)


class Imports:
    """The imports of this server that are under way, by an id of the client."""

    def __init__(self) -> None:
        self._under_way: dict[str, Checking] = {}

    @contextmanager
    def follow(self, import_id: str | None, total: int) -> Iterator[Checking | None]:
        """Let an import be followed by its id while it runs; Conflict if the id is in use."""
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
        """An import that is under way; None if there is none with this id, or no longer."""
        return self._under_way.get(import_id)
