"""URLs of brokers and caches as the fields of our connectors: an address, a login and TLS."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from penstock.cli.convert.draft import Draft
from penstock.cli.convert.located import Node

PORTS = {"redis": 6379, "amqp": 5672, "mqtt": 1883, "nats": 4222}
TLS_PORTS = {"redis": 6379, "amqp": 5671, "mqtt": 8883, "nats": 4222}
TLS = ("rediss", "amqps", "mqtts", "ssl", "tls", "wss")
URL = re.compile(
    r"(?:(?P<scheme>[a-z][\w+.-]*)://)?(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]]+\]|[^:/?#${}]+)(?::(?P<port>\d+))?(?:/(?P<path>[^?#]*))?(?:[?#].*)?",
    re.IGNORECASE,
)


def spread_url(draft: Draft, made: dict[str, Any], node: Node) -> None:
    """Replace `url` of a broker or cache by an address, a login and other fields; `servers` likewise."""
    kind = made["type"]
    if kind not in PORTS:
        return
    given = made.pop("url", None)
    urls = made.get("servers", []) if given is None else [given]
    addresses = []
    for url in urls:
        found = URL.fullmatch(str(url))
        if found is None:
            message = "the address is a variable that contains a URL"
            draft.change(
                node, message, "change the value to host:port, and set security.login", code="changed"
            )
            addresses.append(str(url))
            continue
        secure = (found["scheme"] or "").lower() in TLS
        port = found["port"] or (TLS_PORTS if secure else PORTS)[kind]
        addresses.append(f"{found['host']}:{port}")
        if secure:
            made.setdefault("security", {}).setdefault("tls", {})
        if found["user"] or found["password"]:
            login = made.setdefault("security", {}).setdefault("login", {})
            login.setdefault("username", unquote(found["user"] or "default"))
            login.setdefault("password", found["password"] or "")
        path = unquote(found["path"] or "")
        if kind == "redis" and path.isdigit() and int(path):
            made["database"] = int(path)
        if kind == "amqp" and path:
            made["virtual_host"] = path
    if kind == "nats":
        made["servers"] = addresses
    elif addresses:
        made["address"] = addresses[0]
    if "login" in made.get("security", {}):
        made["security"]["login"].setdefault("username", "default")
        made["security"]["login"].setdefault("password", "")
