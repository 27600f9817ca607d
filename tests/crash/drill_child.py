"""A process that runs the flows of the drill until it is killed, or until all of them are done."""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.runtime.session import open_session
from penstock.frames.logs import LOGS
from penstock.settings import load
from penstock.streams.log import Log
from tests.crash.drill_flows import expected, flow_of, streams_of
from tests.engine.faults import Faulty, wait_for
from tests.flows import running
from tests.java import CACHE

WORDS = ("ok", "ok", "ok", "fail", "lose")
PATIENCE_S = 900


def main(root: Path, names: list[str]) -> None:
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[2]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    flows = [flow_of(root / name) for name in names]
    with ExitStack() as stack:
        kept = {}
        for flow in flows:
            script = random.Random(flow.root.name).choices(WORDS, k=500)
            kept[flow.root] = stack.enter_context(running(flow.keeper(spark, mirror=script)))
        for flow in flows:
            wait_for_all(flow, kept[flow.root])


def wait_for_all(flow: Faulty, kept: Keeper) -> None:
    streams, wanted = streams_of(flow.root), expected(flow.root)
    counts = {"out": wanted.rows, "late": wanted.late, "test.dead": wanted.bad}
    for name, each in counts.items():
        log = LOGS.log(streams.place(name).directory)
        wait_for(f"{name} of {flow.root.name}", partial(_has, kept, log, len(each)), PATIENCE_S)
    wait_for("the mirror", lambda: flow.standing("mirror").state == "in_sync", PATIENCE_S)


def _has(kept: Keeper, log: Log, number: int) -> bool:
    assert kept.state.outcome != "failed", kept.state.error
    return log.bounds().next >= number


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","))
