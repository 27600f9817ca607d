"""A process that runs one flow until all is delivered, or until it dies where the environment says."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.engine.ledger import Ledger
from penstock.engine.session import open_session
from penstock.settings import load
from penstock.testing import crash
from tests.crash.delivery_flow import EVENTS, faulty_flow, streams_of
from tests.engine.faults import wait_for
from tests.flows import running
from tests.java import CACHE


def main(root: Path) -> None:
    crash.arm(Ledger)
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[2]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    streams = streams_of(root)
    flow = faulty_flow(root, streams)
    out, dead = streams.log("out"), streams.log("test.dead")
    with running(flow.keeper(spark, mirror=["fail"] * 6)):
        wait_for("the stream", lambda: out.bounds().next == EVENTS - 1, 120)
        wait_for("the console", lambda: len(set(flow.ids("console"))) == EVENTS - 1, 120)
        wait_for("the mirror", lambda: len(set(flow.ids("mirror"))) == EVENTS - 1, 120)
        wait_for("the letter", lambda: dead.bounds().next >= 1, 120)
        wait_for("rest", lambda: flow.standing("mirror").state == "in_sync", 120)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
