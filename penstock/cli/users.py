"""`penstock user …`: the users of a registry, on the machine of the server."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli.options import Home, Json, Yes, load_settings, settled
from penstock.cli.output import Usage, say, show_json, show_table
from penstock.cli.text import when
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.control.access.access import Access
    from penstock.control.access.users import User

RoleName = Literal["viewer", "operator", "editor", "admin"]
Name = Annotated[str, typer.Argument(help="The name of the user.", show_default=False)]


def add(
    name: Name,
    role: Annotated[RoleName, typer.Option("--role", help="What the user may do.", show_default=False)],
    home: Home = None,
) -> None:
    """Add a user; the password is asked for, or read from standard input. Run it where the server runs."""
    with _access(home) as access:
        made = access.users.add(name, role, read_password(twice=True))
        _record(access, "user.create", name, None, made)
    say(f"{name} can log in as {role}; a running server asks everybody to log in within seconds")


def ls(home: Home = None, json: Json = False) -> None:
    """List users, with their roles and last log-ins. Run it where the server runs."""
    with _access(home) as access:
        found = access.users.all()
    if json:
        show_json({"items": [vars(user) for user in found]})
        return
    rows = [
        [user.name, user.role, user.via, "disabled" if user.disabled else "", when(user.last_login_at)]
        for user in found
    ]
    show_table(["USER", "ROLE", "LOGS IN WITH", "", "LAST LOG-IN"], rows)


def passwd(name: Name, home: Home = None) -> None:
    """Set the password of a user and end all sessions. Run it where the server runs."""
    with _access(home) as access:
        before = access.users.get(name)
        changed = access.users.change(name, password=read_password(twice=True))
        _record(access, "user.password", name, before, changed)


def rm(name: Name, home: Home = None, yes: Yes = False) -> None:
    """Remove a user, with all sessions and tokens. Run it where the server runs."""
    if not yes:
        typer.confirm(f"Remove {name}, with all sessions and tokens?", abort=True)
    with _access(home) as access:
        removed = access.users.remove(name)
        _record(access, "user.delete", name, removed, None)


def role(
    name: Name,
    role: Annotated[RoleName, typer.Argument(help="What the user may do.", show_default=False)],
    home: Home = None,
) -> None:
    """Give a user another role. Run it where the server runs."""
    with _access(home) as access:
        before = access.users.get(name)
        _record(access, "user.update", name, before, access.users.change(name, role=role))


def disable(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help="Let the user log in again.")] = False,
    home: Home = None,
) -> None:
    """Keep a user from logging in; sessions and tokens end. Run it where the server runs."""
    with _access(home) as access:
        before = access.users.get(name)
        _record(access, "user.update", name, before, access.users.change(name, disabled=not undo))


def read_password(*, twice: bool = False) -> str:
    """Read a password from the terminal without echo, or the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if twice and getpass.getpass("Again: ") != password:
        raise Usage(Problem(code="passwords_differ", message="the two passwords are not the same"))
    return password


@contextmanager
def _access(home: Path | None) -> Iterator[Access]:
    from penstock.cli.worker import open_registry
    from penstock.control.access.access import Access

    settings = settled(load_settings(home=home))
    registry = open_registry(settings)
    try:
        yield Access(settings, registry)
    finally:
        registry.close()


def _record(access: Access, action: str, name: str, before: User | None, after: User | None) -> None:
    def shown(user: User | None) -> dict[str, object] | None:
        return None if user is None else {"role": user.role, "via": user.via, "disabled": user.disabled}

    access.audit.record(
        action, f"user/{name}", user=getpass.getuser(), via="cli", before=shown(before), after=shown(after)
    )
