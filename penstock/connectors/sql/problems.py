"""Problems for failures of databases: the message, a hint, and whether a retry can help."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.connectors.sql.client import Place, TableName
from penstock.errors import Invalid, PenstockError, Problem, Unavailable, did_you_mean


@dataclass(frozen=True)
class Flaw:
    """The reason why a database rejects a row."""

    code: str
    message: str


@dataclass(frozen=True)
class Rule:
    """The problem to report for a known kind of database error."""

    code: str
    message: str
    """`{0}` is the database's message; `{address}`, `{database}` and `{user}` are from the URL."""
    hint: str
    path: str | None = "url"
    fatal: bool = True


UNKNOWN_HOST = Rule("unknown_host", "there is no host '{host}'", "check the host name", fatal=False)
UNREACHABLE = Rule(
    "sql_unreachable",
    "no connection to {address}: {0}",
    "check the address, and that the database is running and reachable from here",
    fatal=False,
)
LOGIN = Rule(
    "sql_login",
    "the database rejects the login of {user}: {0}",
    "check the user and the password in 'url', or in 'password'",
)
UNKNOWN_DATABASE = Rule(
    "unknown_database",
    "there is no database '{database}' at {address}",
    "create the database, or correct the URL",
)
FORBIDDEN = Rule(
    "sql_forbidden",
    "permission denied for {user}: {0}",
    "grant the user the privileges to read, write and, if needed, create the table",
    "table",
)
BUSY = Rule(
    "sql_busy", "the database is temporarily unavailable: {0}", "it is retried automatically", fatal=False
)
OPTION = Rule("sql_option", "the client rejects an option: {0}", "check what follows '?' in 'url'")
NO_UNIQUE_KEY = Rule(
    "no_unique_key",
    "the table has no unique index for 'key': {0}",
    "create a primary key or a unique index on exactly these columns",
    "key",
)
FAILED = Rule("sql_failed", "the database reports: {0}", "correct the statement or the table", "table")
FAILING = Rule("sql_failed", "the database reports: {0}", "it is retried automatically", "table", fatal=False)


def error_of(rule: Rule, said: str, place: Place) -> PenstockError:
    """The error of a rule, with the database's message."""
    named = {
        "address": place.address,
        "database": place.database,
        "host": place.host,
        "user": f"'{place.user}'" if place.user else "the user",
    }
    text = place.safe(" ".join(said.split())).rstrip(".")
    message = rule.message.format(text, **named)
    problem = Problem(code=rule.code, message=message, path=rule.path, hint=rule.hint)
    return Invalid(problem) if rule.fatal else Unavailable(problem)


def matching(said: str, patterns: Iterable[tuple[str, Rule]]) -> Rule | None:
    """The rule of the first pattern that matches a database's message."""
    return next((rule for pattern, rule in patterns if re.search(pattern, said)), None)


def unknown_table(table: TableName, found: Iterable[str], *, creatable: bool = True) -> Problem:
    """The problem for a table that doesn't exist."""
    names = list(found)
    hint = did_you_mean(str(table), names) if names else "create the table"
    if creatable:
        hint += "; `create: if_missing` creates it"
    return Problem(code="unknown_table", message=f"there is no table '{table}'", path="table", hint=hint)


def missing_client(extra: str, name: str) -> Invalid:
    """The error for a client library that is not installed."""
    message = f"the {name} client is not installed"
    hint = f"pip install 'penstock[{extra}]'"
    return Invalid(Problem(code="missing_client", message=message, path="url", hint=hint))
