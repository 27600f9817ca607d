"""A worker that has just been permitted to write, and freezes before it writes; see test_frozen.py."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.connectors.base import DeliveryId
from penstock.control.fleet.assignments import Flows, Report
from penstock.control.fleet.lease import Lease
from penstock.control.registry import Registry
from penstock.engine.delivery.ledger import Ledger, Span
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.storage import Cursor, Producer
from tests.streams.kit import events

FLOW, WORKER = "pipeline:numbers:1a2b3c4d", "old"
LEASE_S = 2.0


def main(directory: Path, url: str, uid: str) -> None:
    """Write everything once, freeze, and try to write everything once more."""
    flows = Flows(Registry.open(url))
    log, ledger = Log(open_storage(directory / "stream")), Ledger(directory / "state", 1)
    lease = Lease(
        LEASE_S,
        lambda: flows.renew(WORKER, LEASE_S),
        every_s=0.2,
        on_lapse=lambda: None,
        on_return=lambda: None,
        on_lost=lambda: None,
    )
    lease.start(time.monotonic())
    writes: dict[str, Callable[[int], Any]] = {
        "append": lambda batch: log.append(events(1, first=batch), producer=Producer(FLOW, batch, 1)),
        "cursor": lambda batch: log.move_cursor(Cursor(FLOW, batch, 1)),
        "ledger": lambda batch: ledger.acked(DeliveryId(FLOW, "out", "life", batch), Span(batch, batch + 1)),
        "rollback": lambda batch: flows.roll_back(WORKER, uid, 1, batch + 1, 1, {"code": "rolled_back"}),
    }
    for name in ("append", "cursor", "ledger"):
        writes[name](0)
    assert lease.valid
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    outcomes: dict[str, str] = {"lease": "valid" if lease.valid else "ended"}
    for name, write in writes.items():
        try:
            write(1)
            outcomes[name] = "written"
        except Exception as error:
            outcomes[name] = type(error).__name__
    flows.report(WORKER, [Report(uid, 1, 1, "idle", outcome="failed")])
    flows.release(WORKER, uid, 1)
    print(json.dumps(outcomes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
