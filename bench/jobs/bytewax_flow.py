"""The job in bytewax, for scale: plain Python per event, one worker process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.files import DirSource, FileSink
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main


def taxed(line: str) -> tuple[str, str] | None:
    """Convert a line to a keyed line, or to None if it does not pass the filter."""
    event: dict[str, Any] = json.loads(line)
    if not (event["ok"] and event["amount"] > 50):
        return None
    gross = round(event["amount"] * 1.19, 2)
    return "", json.dumps({"id": event["id"], "user": event["user"], "gross": gross, "at": event["at"]})


def main(source: str, target: str) -> None:
    """Run the job."""
    Path(target).mkdir(parents=True)
    flow = Dataflow("bench")
    lines = op.input("in", flow, DirSource(Path(source), "part-*.json", batch_size=1000))
    op.output("out", op.filter_map("taxed", lines, taxed), FileSink(Path(target) / "out.json"))
    run_main(flow)


if __name__ == "__main__":
    main(*sys.argv[1:])
