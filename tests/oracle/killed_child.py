"""A process that runs a query of Nexmark live, until it is killed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from penstock.engine.runtime.session import open_session
from penstock.settings import load
from tests.java import CACHE
from tests.oracle.nexmark import QUERIES
from tests.oracle.ways import Live


def main(root: Path, query: str, columns: str, max_events: int) -> None:
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[2]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    live = Live(spark, QUERIES[query].job(root / "side_input.csv"), columns, root)
    live.keeper({"max_events": max_events, "max_ms": 10, "max_inflight": 1}).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
