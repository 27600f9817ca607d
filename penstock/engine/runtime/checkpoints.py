"""The checkpoint from which a flow resumes.

A checkpoint holds offsets of the source and the state of the steps. It is usable while both keep their
meaning; otherwise the flow begins another one. Spark itself stores the number of shuffle partitions and the
kind of state store in the checkpoint, so settings change them only for new flows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.plan.flow import Flow
from penstock.sql.remembered import remembered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = re.compile(r"[0-9a-f]{12}(-[0-9a-f]{8})?")
"""The pattern of a checkpoint's directory name."""


@dataclass(frozen=True)
class Memory:
    """The settings that the checkpoint of a flow depends on."""

    position: str
    """The meaning of the source's offsets."""

    states: tuple[str, ...] = ()
    """For each stateful step, the settings that define the meaning of its state."""

    types: tuple[str, ...] | None = None
    """The types of the state in Spark; None if they were not determined."""

    @property
    def key(self) -> str:
        """The name of the checkpoint."""
        if not self.states:
            return self.position
        return f"{self.position}-{_digest([self.states, self.types])[:8]}"

    def same_state(self, other: Memory) -> bool:
        """Whether the state of the steps can be kept."""
        return self.states == other.states and (
            None in (self.types, other.types) or self.types == other.types
        )


def memory_of(flow: Flow, output: Callable[[], DataFrame] | None) -> Memory:
    """The settings that a flow's checkpoint depends on; without `output`, only those in its document."""
    states = tuple(json.dumps(state_of(part.component), sort_keys=True) for part in flow.remembering)
    if not states or output is None:
        return Memory(flow.position_key, states)
    return Memory(flow.position_key, states, tuple(remembered(output())))


def state_of(processor: Any) -> dict[str, Any]:
    """The settings of a step that define the meaning of its state."""
    return {"type": processor.type, **processor.state_of()}


def position_of(key: str) -> str:
    """The part of a checkpoint's name that identifies the meaning of its offsets."""
    return key.partition("-")[0]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
