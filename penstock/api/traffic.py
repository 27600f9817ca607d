"""The clients of a server: the number of connections and followers, unsent bytes, and rejected clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Scope

from penstock.errors import Problem, Unavailable
from penstock.settings.model import LimitSettings
from penstock.streams.open_files import SHARE, descriptors

FEWEST = 8
"""Minimum connections that are served, regardless of the limit on file descriptors."""

BUSY_S = 5
"""Seconds after which a rejected client may retry."""


class TooManyFollowers(Unavailable):
    """The limit of followers is reached."""

    retry_after = float(BUSY_S)


class Traffic:
    """Counts clients against the limits of the settings. Must be used in the event loop of a server."""

    def __init__(self, limits: LimitSettings) -> None:
        self.limits = limits
        self.connections = 0
        self.followers = 0
        self.held_bytes = 0
        """Bytes of messages for followers that are not yet in the buffer of a connection."""
        self.refused_connections = 0
        self.refused_followers = 0
        self.slow_senders = 0
        """Connections closed because a request did not arrive in time."""
        self.slow_readers = 0
        """Connections closed because a response was not read in time."""

    @property
    def most_connections(self) -> int:
        """Maximum concurrent connections."""
        return max(FEWEST, min(self.limits.connections, descriptors() // SHARE))

    @contextmanager
    def following(self) -> Iterator[None]:
        """Count a follower; TooManyFollowers if the limit is reached."""
        if self.followers >= self.limits.followers:
            self.refused_followers += 1
            message = f"{self.followers} clients follow events, logs or streams, and no more may"
            hint = "try again later, or raise limits.followers"
            raise TooManyFollowers(Problem(code="too_many_followers", message=message, hint=hint))
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Count the bytes of a message until all of it is in the buffer of a connection."""
        self.held_bytes += size
        try:
            yield
        finally:
            self.held_bytes -= size


def traffic_of(scope: Scope) -> Traffic:
    """The traffic of the server that received a request."""
    found = (scope.get("state") or {}).get("traffic")
    return found if isinstance(found, Traffic) else Traffic(LimitSettings())
