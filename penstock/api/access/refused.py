"""Refused requests on their way into the audit trail."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from starlette.types import Scope

from penstock.control.access.access import Access
from penstock.control.access.callers import Caller
from penstock.control.access.refusals import UNKNOWN, Refusal

THREADS = 2
"""For writing entries: a flood of requests must not occupy those who ask who somebody is."""


class RefusedRequests:
    """Notes refused requests, without keeping the event loop waiting."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._threads = CapacityLimiter(THREADS)

    async def note(
        self, scope: Scope, status: int, caller: Caller | None = None, action: str | None = None
    ) -> None:
        """Write the refusal of a request, unless the same was refused a moment ago."""
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
