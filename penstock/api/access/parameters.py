"""The caller of a request, as a parameter of routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.api.access.guard import CALLER
from penstock.control.access.callers import Caller


def _somebody(request: Request) -> Caller | None:
    found: Caller | None = request.scope[CALLER]
    return found


def _caller(request: Request) -> Caller:
    found: Caller = request.scope[CALLER]
    return found


def address_of(request: Request) -> str:
    """The address that a request came from."""
    return request.client.host if request.client else "unknown"


Somebody = Annotated[Caller | None, Depends(_somebody)]
"""The caller; None if not logged in."""

Who = Annotated[Caller, Depends(_caller)]
"""The caller of a route that needs a role."""
