"""Users: their names, roles and passwords."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from penstock.control.access import passwords
from penstock.control.access.roles import Role
from penstock.control.registry import database
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import sessions, tokens, users
from penstock.errors import Conflict, Invalid, NotFound, Problem, did_you_mean

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
LOCAL = "local"
"""The user name of all requests while authentication is off."""

Via = Literal["password", "oidc"]


@dataclass(frozen=True)
class User:
    """A user, without the password."""

    name: str
    role: Role
    via: Via
    disabled: bool
    created_at: datetime
    last_login_at: datetime | None


class Users:
    """The users of a registry. Each change is one transaction; the last admin can't be removed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def exist(self) -> bool:
        """Whether any user exists."""
        with self._registry.engine.connect() as conn:
            return conn.scalar(select(users.c.name).limit(1)) is not None

    def all(self) -> list[User]:
        """Every user, by name."""
        with self._registry.engine.connect() as conn:
            return [_user(row) for row in conn.execute(select(users).order_by(users.c.name))]

    def get(self, name: str) -> User:
        """A user; NotFound if there is none of that name."""
        with self._registry.engine.connect() as conn:
            return _user(_row(conn, name))

    def add(self, name: str, role: str, password: str, *, first: bool = False) -> User:
        """Add a user who logs in with a password. With `first`, Conflict if there is a user already."""
        _check_name(name)
        _check_role(role)
        values = {"role": role, "password": passwords.hashed(password)}
        with self._registry.begin() as conn:
            database.lock(conn, database.ACCESS_LOCK)
            if first and conn.scalar(select(users.c.name).limit(1)) is not None:
                message = "there is a user already"
                raise Conflict(Problem(code="set_up_already", message=message, hint="log in"))
            return _insert(conn, name, values)

    def change(
        self, name: str, *, role: str | None = None, password: str | None = None, disabled: bool | None = None
    ) -> User:
        """Change the given fields. A new password, or `disabled`, ends the sessions of the user."""
        changed: dict[str, Any] = {}
        if role is not None:
            _check_role(role)
            changed["role"] = role
        if password is not None:
            changed["password"] = passwords.hashed(password)
        if disabled is not None:
            changed["disabled"] = disabled
        with self._registry.begin() as conn:
            database.lock(conn, database.ACCESS_LOCK)
            row = _row(conn, name)
            if password is not None and row.subject is not None:
                message = f"'{name}' logs in with OpenID Connect, and has no password here"
                raise Conflict(Problem(code="no_password", message=message))
            if changed:
                conn.execute(update(users).where(users.c.name == name).values(**changed))
            if password is not None or disabled:
                conn.execute(delete(sessions).where(sessions.c.user == name))
            _require_admin(conn, name)
            return _user(_row(conn, name))

    def remove(self, name: str) -> User:
        """Remove a user, with all sessions and tokens."""
        with self._registry.begin() as conn:
            database.lock(conn, database.ACCESS_LOCK)
            found = _user(_row(conn, name))
            conn.execute(delete(tokens).where(tokens.c.user == name))
            conn.execute(delete(users).where(users.c.name == name))
            _require_admin(conn, name)
            return found

    def check(self, name: str, password: str) -> User | None:
        """The user with that name and password; None if there is none, or the user is disabled."""
        with self._registry.engine.connect() as conn:
            row = conn.execute(select(users).where(users.c.name == name)).first()
        right = passwords.verified(password, None if row is None else row.password)
        return _user(row) if row is not None and right and not row.disabled else None

    def log_in_from_provider(self, subject: str, name: str, role: str | None, default: str | None) -> User:
        """The user that a provider knows as `subject`; created at the first log-in, with the given name.

        `role` is set by the provider; None: the provider sets no roles, and a new user gets `default`.
        """
        with self._registry.begin() as conn:
            database.lock(conn, database.ACCESS_LOCK)
            row = conn.execute(select(users).where(users.c.subject == subject)).first()
            if row is None:
                given = role or default
                if given is None:
                    raise _no_role(name)
                _check_name(name)
                return _insert(conn, name, {"role": given, "subject": subject})
            if row.disabled:
                raise Conflict(Problem(code="disabled", message=f"the user '{row.name}' is disabled"))
            if role is not None and role != row.role:
                conn.execute(update(users).where(users.c.name == row.name).values(role=role))
            return _user(_row(conn, row.name))


def _insert(conn: Connection, name: str, values: dict[str, Any]) -> User:
    if conn.scalar(select(users.c.name).where(func.lower(users.c.name) == name.lower())) is not None:
        message = f"there is a user '{name}' already"
        raise Conflict(Problem(code="name_in_use", message=message, path="name"))
    made = {"name": name, "disabled": False, "created_at": datetime.now(UTC), **values}
    conn.execute(insert(users).values(**made))
    if "subject" not in values:
        _require_admin(conn, name)
    return _user(_row(conn, name))


def _require_admin(conn: Connection, name: str) -> None:
    """Conflict, which rolls back the change, if no enabled admin would be left to manage users."""
    admin = select(users.c.name).where(users.c.role == "admin", users.c.disabled.is_(False)).limit(1)
    if conn.scalar(admin) is None:
        raise Conflict(
            Problem(
                code="last_admin",
                message=f"without '{name}' as admin, users could no longer be managed",
                hint="make another user an admin first",
            )
        )


def _row(conn: Connection, name: str) -> Row[Any]:
    row = conn.execute(select(users).where(users.c.name == name)).first()
    if row is None:
        raise NotFound(Problem(code="not_found", message=f"there is no user '{name}'"))
    return row


def _user(row: Row[Any]) -> User:
    via: Via = "password" if row.subject is None else "oidc"
    return User(row.name, cast(Role, row.role), via, row.disabled, row.created_at, row.last_login_at)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name == LOCAL:
        hint = "letters, digits and . _ @ + -, at most 64, beginning with a letter or a digit; not 'local'"
        message = "invalid user name"
        raise Invalid(Problem(code="invalid_name", message=message, path="name", hint=hint))


def _check_role(role: str) -> None:
    if role not in get_args(Role):
        hint = did_you_mean(role, get_args(Role))
        raise Invalid(
            Problem(code="unknown_role", message=f"there is no role '{role}'", path="role", hint=hint)
        )


def _no_role(name: str) -> Conflict:
    return Conflict(
        Problem(
            code="no_role",
            message=f"the provider gives '{name}' no role here",
            hint="map a value of the claim in auth.oidc.roles, or set auth.oidc.default_role",
        )
    )
