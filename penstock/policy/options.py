"""Files and servers in options of client libraries and in database URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.policy.paths import HOSTED, STORES, scheme_of
from penstock.specs.reach import Reached

PATH_NAMES = re.compile(
    r"(^|[._-])(path|paths|file|dir|directory|location|warehouse|keystore|truststore|passfile|servicefile"
    r"|sslcert|sslkey|sslrootcert|sslcrl|sslcrldir|ssl_ca|ssl_cert|ssl_key)$|location$",
    re.IGNORECASE,
)
"""Options whose value is a path."""

HOST_NAMES = re.compile(
    r"(^|[._-])(host|hostname|hostaddr|endpoint|servers|bootstrap|url|uri|address|proxy|brokers?)([._-]url)?$"
    r"|endpoint_url|_endpoint$|proxy[._]host$",
    re.IGNORECASE,
)
"""Options whose value is a host, an address or a URL."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATH = re.compile(r"file:|~?/\w|\.\.(/|$)|.*/\.\.(/|$)", re.IGNORECASE)

FILE_DATABASES = ("sqlite", "duckdb")


def named_by(each: Reached) -> Iterator[Reached]:
    """The files and servers in the value of an option, or in a database URL."""
    yield from _option(each) if each.kind == "options" else _database(each)


def _option(each: Reached) -> Iterator[Reached]:
    name, text = each.option, each.text
    if text.startswith("["):  # Spark's `paths`
        for inner in _listed(text):
            yield from _option(replace(each, text=inner))
    elif HOST_NAMES.search(name):
        # A PostgreSQL socket is specified by its directory.
        yield replace(each, kind="path" if text.startswith("/") else "address")
    elif URL.match(text) and not text.lower().startswith("file:"):
        yield replace(each, kind="path" if scheme_of(text) in STORES | HOSTED else "url")
    elif PATH_NAMES.search(name) or PATH.match(text):
        yield replace(each, kind="path")


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _database(each: Reached) -> Iterator[Reached]:
    scheme, _, rest = each.text.partition("://")
    kind = scheme.partition("+")[0].lower()
    if kind in ("http", "https"):
        yield replace(each, kind="url")
        return
    parts = urlsplit(f"x://{rest}")
    if kind in FILE_DATABASES or not parts.netloc.rpartition("@")[2]:
        path = unquote(parts.path)[1:]
        yield replace(each, kind="path", text=path.removeprefix("file:") or ".")
    else:
        yield replace(each, kind="address", text=parts.netloc)
    for name, value in parse_qsl(parts.query):
        yield from _option(replace(each, kind="options", option=name, text=value))
