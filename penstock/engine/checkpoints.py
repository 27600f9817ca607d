"""Which checkpoint a flow goes on with.

A checkpoint holds offsets of the source, and what steps remember of events. It is of use as long as both keep
their meaning; a flow for which they do not begins another one. The number of shuffle partitions and the kind
of state store are kept in the checkpoint by Spark itself, so settings may change them for new flows only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.flow import Flow
from penstock.sql.remembered import remembered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = re.compile(r"[0-9a-f]{12}(-[0-9a-f]{8})?")
"""What the directory of a checkpoint is called."""


@dataclass(frozen=True)
class Memory:
    """What the checkpoint of a flow is bound to."""

    position: str
    """The meaning of the source's offsets."""

    states: tuple[str, ...] = ()
    """Of each step that remembers events, what decides the meaning of that."""

    types: tuple[str, ...] | None = None
    """What Spark keeps for them; None if it was not asked."""

    @property
    def key(self) -> str:
        """The name of the checkpoint."""
        if not self.states:
            return self.position
        return f"{self.position}-{_digest([self.states, self.types])[:8]}"

    def same_state(self, other: Memory) -> bool:
        """Whether what steps remember can be kept."""
        return self.states == other.states and (
            None in (self.types, other.types) or self.types == other.types
        )


def memory_of(flow: Flow, output: Callable[[], DataFrame] | None) -> Memory:
    """What a flow is bound to. Without the frame that it puts out only what its document says is known."""
    states = tuple(json.dumps(state_of(part.component), sort_keys=True) for part in flow.remembering)
    if not states or output is None:
        return Memory(flow.position_key, states)
    return Memory(flow.position_key, states, tuple(remembered(output())))


def state_of(processor: Any) -> dict[str, Any]:
    """What decides the meaning of what a step remembers."""
    return {"type": processor.type, **processor.state_of()}


def position_of(key: str) -> str:
    """The part of a checkpoint's name that tells the meaning of its offsets."""
    return key.partition("-")[0]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
