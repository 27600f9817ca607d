"""Access to an installation: whether users have to log in, and the identity of callers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from cachetools import TTLCache
from sqlalchemy.exc import SQLAlchemyError

from penstock.control.access.attempts import Attempts
from penstock.control.access.audit import Audit
from penstock.control.access.callers import Caller
from penstock.control.access.refusals import Refusals
from penstock.control.access.secrets import digest, matches, new_secret
from penstock.control.access.sessions import Sessions
from penstock.control.access.tokens import Tokens
from penstock.control.access.users import User, Users
from penstock.control.registry.store import Registry
from penstock.errors import PenstockError, Problem, Unauthorised
from penstock.settings import Settings

CACHED_S = 5.0
"""How long a caller is cached without querying the registry: a revocation takes effect within that time."""

OUTAGE_S = 600.0
"""How long a cached caller stays valid while the registry isn't responding, so that ingest continues."""

KNOWN = 10_000
"""Maximum number of cached callers."""

SETUP_S = 3600.0
"""How long the link for the first admin is valid."""


def require_authentication(settings: Settings, users: Users) -> None:
    """PenstockError if other machines could reach a server without authentication."""
    auth = settings.auth
    if settings.is_local or auth.mode == "on" or auth.oidc.issuer or users.exist():
        return
    raise PenstockError(
        Problem(
            code="no_authentication",
            message=f"other machines can reach {settings.host}, and authentication is off",
            path="host",
            hint='add a user with `penstock user add NAME --role admin`, or set auth.mode = "on"',
        )
    )


@dataclass
class _Known:
    caller: Caller
    asked: float


class Access:
    """Users, sessions, tokens and the audit trail of an installation."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.settings, self._registry = settings, registry
        self.users, self.tokens = Users(registry), Tokens(registry)
        self.attempts = Attempts()
        self._has_users = False
        self._setup: tuple[str, float] | None = None
        self._known: TTLCache[str, _Known] = TTLCache(KNOWN, OUTAGE_S)
        self._mutex, self._setting_up = threading.Lock(), threading.Lock()

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of browsers."""
        return Sessions(self._registry, self.settings.auth)

    @cached_property
    def audit(self) -> Audit:
        """The audit trail."""
        return Audit(self._registry, self.settings.audit.retention_days)

    @cached_property
    def refusals(self) -> Refusals:
        """The denied requests that are to be written to the audit trail."""
        return Refusals(self.audit)

    @property
    def on(self) -> bool:
        """Whether users have to log in. Once true, it stays true until the server stops."""
        return self._has_users or self._required

    @cached_property
    def _required(self) -> bool:
        auth = self.settings.auth
        return auth.mode == "on" or auth.oidc.issuer is not None or not self.settings.is_local

    def refresh(self) -> None:
        """Check whether a user exists now: the command line may have added one."""
        self._has_users = self._has_users or self.users.exist()

    # The first admin

    def new_setup_secret(self) -> str:
        """A new secret for the link that creates the first admin: valid once, for an hour."""
        secret = new_secret()
        self._setup = digest(secret), time.monotonic() + SETUP_S
        return secret

    def set_up(self, secret: str, name: str, password: str) -> User:
        """Create the first admin; Unauthorised if the link is no longer valid."""
        with self._setting_up:
            known, until = self._setup or ("", 0.0)
            if not matches(secret, known) or time.monotonic() > until:
                raise Unauthorised(
                    Problem(
                        code="wrong_secret",
                        message="this link was used already, or is older than an hour",
                        hint="start Penstock again for a new link",
                    )
                )
            made = self.users.add(name, "admin", password, first=True)
            self._setup = None
        self._has_users = True
        return made

    # Log-in

    def log_in(self, name: str, password: str, address: str) -> User:
        """The user with that name and password; Unauthorised or TooManyAttempts."""
        self.attempts.begin(name, address)
        user = self.users.check(name, password)
        if user is None:
            message = "the name or the password is wrong"
            raise Unauthorised(Problem(code="wrong_login", message=message))
        self.attempts.succeeded(name, address)
        return user

    # Identity of callers

    def recent(self, credential: str) -> Caller | None:
        """The owner of a token or a session, if cached within the last `CACHED_S` seconds."""
        with self._mutex:
            found = self._known.get(digest(credential))
        if found is None or time.monotonic() - found.asked >= CACHED_S or found.caller.expired:
            return None
        return found.caller

    def of_token(self, text: str) -> Caller | None:
        """The owner of a token, if it is valid."""
        return self._ask(text, lambda: self.tokens.caller(text))

    def of_session(self, secret: str, *, used: bool = True) -> Caller | None:
        """The user of a session, if the session has not ended."""
        return self._ask(secret, lambda: self.sessions.caller(secret, used=used))

    def forget(self) -> None:
        """Clear the cache of callers, after a change by this process."""
        with self._mutex:
            self._known.clear()

    def _ask(self, credential: str, find: Callable[[], Caller | None]) -> Caller | None:
        key = digest(credential)
        try:
            caller = find()
        except SQLAlchemyError:
            with self._mutex:
                known = self._known.get(key)
            if known is None or known.caller.expired:
                raise
            return known.caller
        with self._mutex:
            if caller is None:
                self._known.pop(key, None)
            else:
                self._known[key] = _Known(caller, time.monotonic())
        return caller
