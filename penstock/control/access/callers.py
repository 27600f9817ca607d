"""Who a request comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from penstock.control.access.users import LOCAL

Via = Literal["local", "password", "oidc", "token"]


@dataclass(frozen=True)
class Caller:
    """Somebody with a role: a user, or the owner of a token."""

    name: str
    role: str
    via: Via
    source: str | None = None
    """The only source that it may send events to; None: any that its role permits."""
    session: str | None = None
    """The hash of its session."""
    csrf: str | None = None
    """What a request of its session has to carry if it changes something."""
    token: str | None = None
    """The id of its token."""
    expires_at: datetime | None = None
    """The end of its token."""

    @property
    def expired(self) -> bool:
        """Whether its token has come to its end."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


LOCAL_ADMIN = Caller(LOCAL, "admin", "local")
"""Everybody, while authentication is off."""
