"""The policy of an installation: the resources that its documents may access.

The policy is created from the settings `policy.*` of the process that opens files and connections, and is
checked twice: when a document is validated, against its content, and right before a resource is opened,
against its current location.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from penstock.errors import Invalid, Problem
from penstock.policy.addresses import Addresses, Network, hosts_in
from penstock.policy.options import named_by
from penstock.policy.paths import HOSTED, STORES, Paths, scheme_of
from penstock.secrets import NO_SECRETS, Lookup, Secrets
from penstock.settings import FOR_DOCUMENTS, Settings
from penstock.specs.reach import Reached, reached

OWN = (
    "registry.db", "registry.db-wal", "registry.db-shm", "registry.db-journal", "streams", "memory",
    "server-streams", "flows", "runs", "run", "logs", "worker.crt", "worker.key", "secrets.key", "home.id",
    "up.lock", "penstock.toml",
)  # fmt: skip
"""Penstock's own files in the data directory."""

HOME = "PENSTOCK_HOME"


@dataclass(frozen=True)
class Policy:
    """The resources that documents may access from this process."""

    paths: Paths = field(default_factory=lambda: Paths(()))
    addresses: Addresses = field(default_factory=lambda: Addresses(private=False))
    formats: frozenset[str] | None = frozenset()
    """Data sources of Spark that the `spark` connector may use, in lower case; None: any."""
    variables: frozenset[str] | None = frozenset()
    """Allowed variables in addition to those for documents; None: all."""
    secrets: Secrets = NO_SECRETS
    """The reader of secrets that documents use."""

    @classmethod
    def of(cls, settings: Settings, *, users: bool | None = None, all_variables: bool = False) -> Self:
        """The policy of the settings.

        `users`: whether users log in; default: derived from the settings.
        `all_variables`: allow all variables, since the documents belong to the user of this environment.
        """
        chosen = settings.policy
        home, start = os.path.realpath(settings.home), os.path.realpath(os.getcwd())
        own = [*(os.path.join(home, name) for name in OWN), os.path.join(start, "penstock.toml")]
        if (url := settings.storage.url) is not None and not scheme_of(url):
            own.append(_real(url.removeprefix("file:")))
        roots = [_real(path) for path in chosen.paths]
        # Services are started at the root of the file system, which would be no restriction.
        roots = roots or [home, *([start] if start != "/" else []), *map(_real, settings.storage.shared)]
        networks, names = _split(chosen.addresses)
        private = chosen.private_addresses
        users = has_users(settings) if users is None else users
        return cls(
            Paths(tuple(roots), tuple(own)),
            Addresses(private == "allow" or (private == "auto" and not users), networks, names),
            frozenset(each.lower() for each in chosen.spark_formats),
            None if all_variables else frozenset(chosen.variables),
            Secrets.of(settings),
        )

    def reads(self, lookup: Lookup) -> Callable[[str], str]:
        """A function that reads secrets, whose documents `lookup` finds."""
        return lambda name: self.secrets.read(name, lookup, self.allows_variable)

    def allows_variable(self, name: str) -> bool:
        """Whether a document may use the value of a variable."""
        return (
            self.variables is None or name in self.variables or name.startswith(FOR_DOCUMENTS) or name == HOME
        )

    def require(self, spec: BaseModel, *, resolve: bool = True) -> None:
        """Raise `Invalid`, with paths relative to the spec, unless all its resources may be opened now."""
        if problems := list(self.problems(spec, resolve=resolve)):
            raise Invalid(*problems)

    def problems(
        self, spec: BaseModel, at: str = "", *, resolve: bool = False, variables: bool = False
    ) -> Iterator[Problem]:
        """A problem for each resource in a spec that must not be accessed.

        With `resolve`, host names are resolved; otherwise only literal addresses are checked. With
        `variables`, the spec still contains variables: a text with a variable is checked when its value is
        known.
        """
        for each in reached(spec, at):
            if not variables or "${" not in each.text:
                yield from self._judged(each, resolve)

    def _judged(self, each: Reached, resolve: bool) -> Iterator[Problem]:
        if each.kind in ("path", "files"):
            yield from self._path(each.text, each.field, resolve, files=each.kind == "files")
        elif each.kind in ("url", "address"):
            yield from self._hosts(each.text, each.field, resolve)
        elif each.kind in ("options", "database"):
            for named in named_by(each):
                yield from self._judged(named, resolve)
        elif each.kind == "format" and self.formats is not None and each.text.lower() not in self.formats:
            message = f"the Spark format '{each.text}' is not allowed here"
            hint = "an administrator can add it to policy.spark_formats"
            yield Problem(code="format_not_allowed", message=message, path=each.field, hint=hint)

    def _path(self, text: str, field: str, resolve: bool, *, files: bool) -> Iterator[Problem]:
        scheme = scheme_of(text)
        if scheme in HOSTED:
            yield from self._hosts(text, field, resolve)
        elif (scheme and scheme not in STORES and self.paths.roots is not None) or (
            not scheme and not self.paths.allows(text, files=files)
        ):
            yield _path_problem(text, field)

    def _hosts(self, text: str, field: str, resolve: bool) -> Iterator[Problem]:
        for host in hosts_in(text):
            if "{" in host:  # filled in from events; checked before it is connected to
                continue
            if (address := self.addresses.refused(host, resolve=resolve)) is not None:
                yield address_problem(host, address, field)


def _real(path: str) -> str:
    return os.path.realpath(Path(path).expanduser())


def has_users(settings: Settings) -> bool:
    """Whether users log in to this installation, according to the settings.

    A worker does not know the users. A server that other machines can reach does not start without users.
    """
    auth = settings.auth
    return not settings.is_local or auth.mode == "on" or auth.oidc.issuer is not None or bool(auth.proxies)


UNRESTRICTED = Policy(Paths(None), Addresses(everywhere=True), None, None)
"""Everything is allowed: for flows that Penstock itself creates, and for tests."""


def address_problem(host: str, address: str, field: str | None = None) -> Problem:
    """The problem of an address that must not be connected to."""
    where = host if host == address else f"{host} ({address})"
    return Problem(
        code="address_not_allowed",
        message=f"connections to {where} are not allowed here",
        path=field,
        hint="an administrator can add the network or the name to policy.addresses"
        " (policy.private_addresses for all private ones)",
    )


def _path_problem(path: str, field: str) -> Problem:
    return Problem(
        code="path_not_allowed",
        message=f"'{path}' is outside the directories that documents may use",
        path=field,
        hint="use a path below one of the directories of policy.paths, or ask an administrator to add one",
    )


def _split(addresses: list[str]) -> tuple[tuple[Network, ...], tuple[str, ...]]:
    networks: list[Network] = []
    names: list[str] = []
    for each in addresses:
        try:
            networks.append(ipaddress.ip_network(each, strict=False))
        except ValueError:
            names.append(each.lower())
    return tuple(networks), tuple(names)
