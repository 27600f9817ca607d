"""What a flow of `postgres_cdc` has kept of its source: events and a position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.connectors.postgres_cdc.source import PostgresCdcSource
from penstock.connectors.received import Receiver
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED

QUIET_S = 0.2


def no_stream(name: str) -> Any:
    raise AssertionError(name)


@dataclass
class Log:
    """What is durable: events, and the position of the last of them."""

    source: PostgresCdcSource
    flow: str = "pipeline:test:1"
    epoch: int = 1
    events: list[dict[str, Any]] = field(default_factory=list)
    tx: list[tuple[int, int, str, bool]] = field(default_factory=list)
    position: str | None = None
    receiver: Receiver | None = None

    def open(self) -> Receiver:
        """Connect, as after a crash if it was connected before."""
        if self.receiver is not None:
            self.receiver.close()
        self.receiver = self.source.receiver(
            Site(self.flow, self.epoch, no_stream, "in", policy=UNRESTRICTED)
        )
        self.receiver.open(self.position)
        return self.receiver

    def step(self, wait_s: float = QUIET_S, *, lost: bool = False, confirm: bool = True) -> bool:
        """Receive once; false if there was nothing. `lost`: the events are not kept, as after a crash."""
        assert self.receiver is not None
        received = self.receiver.receive(wait_s)
        if received is None:
            return False
        if not lost:
            first = len(self.events)
            self.events += received.events.to_pylist()
            self.tx += [(first + a, first + b, name, ends) for a, b, name, ends in received.tx]
            self.position = received.position
            if confirm:
                self.receiver.acknowledge(received)
        return True

    def drain(self) -> Log:
        """Receive all that there is."""
        if self.receiver is None:
            self.open()
        quiet = 0
        while quiet < 3:
            quiet = 0 if self.step() else quiet + 1
        return self

    def close(self) -> None:
        if self.receiver is not None:
            self.receiver.close()
            self.receiver = None
