"""Connection tests: whether a connector can reach its system, and the objects that it finds."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from penstock.errors import Problem

CONNECT_S = 2.0
"""Seconds that an address may take to accept a connection."""


class Probe(BaseModel):
    """The result of a connection test."""

    checked: bool = Field(default=True, description="False if the connector has no connection test.")
    problems: list[Problem] = Field(
        default_factory=list, description="Problems; paths are relative to the connector."
    )
    offers: dict[str, list[str]] = Field(
        default_factory=dict, description="Names found in the system, such as `topics`."
    )
    sample: list[dict[str, Any]] = Field(default_factory=list, description="Sample events.")


def unreachable(addresses: Sequence[str], path: str) -> list[Problem]:
    """A problem for each address `host:port`, if none of them accepts a connection."""
    found = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
            return []
        except socket.gaierror:
            message, hint = f"there is no host '{host}'", "check the host name"
            found.append(Problem(code="unknown_host", message=message, path=path, hint=hint))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            message = f"no connection to {address}: {reason.lower()}"
            hint = "check the port, and that the server is running and reachable from the worker"
            found.append(Problem(code="unreachable", message=message, path=path, hint=hint))
    return found
