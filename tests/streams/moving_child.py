"""A process that moves a stream, and is killed at a step of the move."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from penstock.streams.kafka import moving
from penstock.streams.kafka.cluster import Cluster
from penstock.streams.kafka.moving import Move, begin


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killed(Move):
    """Is killed before or after one of its steps."""

    def _keep(self) -> None:
        super()._keep()
        if at == "kept" or (at == "switching" and self._switching):
            die()

    def _switch(self, local: Any) -> None:
        if at == "copied":
            die()
        super()._switch(local)

    @property
    def _switching(self) -> bool:
        return bool(self._state.producers.known)


if __name__ == "__main__":
    at = os.environ["PENSTOCK_TEST_KILL_AT"]
    directory, brokers, prefix = sys.argv[1:]
    change = moving.change_config
    if at == "left":
        moving.change_config = die  # type: ignore[assignment]
    if at == "switched":
        moving.change_config = lambda *given: (change(*given), die())  # type: ignore[assignment, func-returns-value]
    moving.UNDER_WAY = 10_000
    note = begin(Path(directory), Cluster(brokers, prefix=prefix, replication=1))
    Killed(Path(directory), note, lambda done, total: None, lambda: False).run()
