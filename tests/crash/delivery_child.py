"""A process that runs flows until all is delivered, or until it dies where it was told to."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

from penstock.engine.runtime.session import open_session
from penstock.settings import load
from tests.crash.delivery_flow import EVENTS, faulty_flow, streams_of
from tests.crash.freezer import Freezer
from tests.engine.faults import Faulty, wait_for
from tests.flows import running
from tests.java import CACHE

PATIENCE_S = 200


def main(root: Path, names: list[str], places: dict[str, str]) -> None:
    if places:
        Freezer({faulty_flow(root / name).state: place for name, place in places.items()}).arm()
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[2]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    with ExitStack() as stack:
        flows = [faulty_flow(root / name) for name in names]
        for flow in flows:
            stack.enter_context(running(flow.keeper(spark, mirror=["fail"] * 6)))
        for flow in flows:
            wait_for_all(flow)


def wait_for_all(flow: Faulty) -> None:
    streams = streams_of(flow.root)
    out, dead = streams.log("out"), streams.log("test.dead")
    wait_for("the stream", lambda: out.bounds().next == EVENTS - 1, PATIENCE_S)
    wait_for("the console", lambda: len(set(flow.ids("console"))) == EVENTS - 1, PATIENCE_S)
    wait_for("the mirror", lambda: len(set(flow.ids("mirror"))) == EVENTS - 1, PATIENCE_S)
    wait_for("the letter", lambda: dead.bounds().next >= 1, PATIENCE_S)
    wait_for("rest", lambda: flow.standing("mirror").state == "in_sync", PATIENCE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), **json.loads(sys.argv[2]))
