"""The control plane as used by workers: a narrow interface with two implementations.

`Registry` and `Flows` implement the interface on the database, `penstock.control.wire` over HTTP. The
signatures also define the wire format: arguments and results are encoded by their types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.control.fleet.assignments import Flows, Report
from penstock.control.registry.documents import Documents
from penstock.control.registry.records import JsonObject, Mark, Record
from penstock.control.registry.store import Registry
from penstock.control.streams.logs import Streams
from penstock.settings import Settings


class RegistryAway(Exception):
    """The registry is unreachable, or does not respond in time; the request can be retried."""


class Assignments(Protocol):
    """Leases and assignments, as used by a worker; see `Flows`. Every write names worker and epoch."""

    def join(
        self,
        worker: str,
        pid: int,
        url: str,
        token: str,
        lease_s: float,
        info: JsonObject,
        labels: Mapping[str, str] | None = None,
        capacity: int | None = None,
        host: str | None = None,
        home: str = "",
        certificate: str | None = None,
        standby: bool = False,
        questions: bool = False,
    ) -> None:
        """Register a worker."""

    def renew(self, worker: str, lease_s: float, info: JsonObject | None = None) -> bool:
        """Renew the lease of a worker; false if the worker was removed as dead."""

    def draining(self, worker: str) -> None:
        """Mark a worker as draining."""

    def leave(self, worker: str) -> None:
        """Remove a worker and its leases."""

    def mark(self, worker: str) -> Mark:
        """A value that changes with any document, and with the desired status of a worker's flows."""

    def assigned(self, worker: str) -> list[Record]:
        """The flows that a worker holds."""

    def report(self, worker: str, reports: Sequence[Report]) -> None:
        """Store a worker's reports on the flows it still holds."""

    def release(self, worker: str, uid: str, epoch: int, untouched: bool = False) -> None:
        """Release a flow; `untouched` if it has left no progress in the home of the worker."""

    def roll_back(
        self, worker: str, uid: str, epoch: int, revision: int, fallback: int, error: JsonObject
    ) -> None:
        """Make an earlier revision of a flow the newest one, since `revision` did not start."""


@dataclass(frozen=True)
class Control:
    """The control plane of a worker, and the streams that the worker can access."""

    documents: Documents
    flows: Assignments
    streams: Streams
    home: str = ""
    """The id of the worker's home; empty: the server's home."""


def database_control(settings: Settings, registry: Registry) -> Control:
    """The control plane of a worker that uses the registry's database and the server's home."""
    return Control(registry, Flows(registry), Streams(settings, registry))
