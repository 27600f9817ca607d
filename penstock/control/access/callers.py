"""The caller of a request: its name, role and credential."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from penstock.control.access.users import LOCAL

Via = Literal["local", "password", "oidc", "token"]


@dataclass(frozen=True)
class Caller:
    """A caller with a role: a user, or the owner of a token."""

    name: str
    role: str
    via: Via
    source: str | None = None
    """The only source that the caller may send events to; None: any source that its role permits."""
    session: str | None = None
    """The hash of the caller's session."""
    csrf: str | None = None
    """The CSRF token that requests of the session must carry if they change something."""
    token: str | None = None
    """The id of the caller's token."""
    expires_at: datetime | None = None
    """The expiry time of the caller's token."""

    @property
    def expired(self) -> bool:
        """Whether the caller's token has expired."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


LOCAL_ADMIN = Caller(LOCAL, "admin", "local")
"""The caller of all requests while authentication is off."""
