"""Writes denied requests to the audit trail."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from starlette.types import Scope

from penstock.control.access.access import Access
from penstock.control.access.callers import Caller
from penstock.control.access.refusals import UNKNOWN, Refusal

THREADS = 2
"""Threads for writing entries: a flood of requests must not occupy the threads that identify callers."""


class RefusedRequests:
    """Records denied requests without blocking the event loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._threads = CapacityLimiter(THREADS)

    async def note(
        self, scope: Scope, status: int, caller: Caller | None = None, action: str | None = None
    ) -> None:
        """Write an entry for a denied request, unless the limit for equal requests is reached."""
        refusal = Refusal(
            action or UNKNOWN,
            f"{scope['method']} {scope['path']}",
            caller.name if caller else None,
            caller.via if caller else None,
            scope["client"][0] if scope.get("client") else None,
            status,
        )
        if self._access.refusals.is_new(refusal):
            write = self._access.refusals.write
            await to_thread.run_sync(lambda: write(refusal), limiter=self._threads)
