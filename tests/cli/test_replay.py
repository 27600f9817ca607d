"""`penstock replay` and `replays`, against a real server whose worker runs nothing."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_name
from penstock.streams.storage import Cursor
from tests.api.kit import pipeline, stream
from tests.cli.test_client import penstock, told, write
from tests.cli.test_plans import place, service  # noqa: F401 (fixtures)


@pytest.fixture
def orders(service: Service) -> Service:  # noqa: F811
    """A pipeline over a stream of ten events."""
    if service.registry.find("Pipeline", "orders") is None:
        lake = {"id": "lake", "type": "file", "path": "out", "format": "json"}
        orders = pipeline("orders", source={"type": "stream", "stream": "raw"}, sinks=[lake])
        assert penstock("apply", write("o.yaml", stream("raw"), orders)).exit_code == 0
        Path("ten").write_text("".join(f"{n}\n" for n in range(10)))
        assert penstock("stream", "produce", "raw", "--file", "ten").exit_code == 0
    return service


def test_a_dry_run_tells_what_it_would_do(orders: Service) -> None:
    shown = penstock("replay", "orders", "--from", "offset:4", "--to", "offset:9", "--all", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "5 events, about" in shown.stdout
    assert "offsets 4 to 8 of stream raw" in shown.stdout
    assert (
        "lake (file): receives each event once, in addition to the deliveries of the pipeline" in shown.stdout
    )
    assert "nothing was started" in shown.stderr
    assert told("replays", "orders") == []
    shadow = told("replay", "orders", "--from", "earliest", "--shadow-file", "copy", "--dry-run")
    assert [(s["type"], s["again"]) for s in shadow["sinks"]] == [("file", False)]


def test_a_replay_is_started_listed_and_waited_for(orders: Service) -> None:
    began = told("replay", "orders", "--from", "earliest", "--sink", "lake", "--name", "Second time")
    assert began["replay"]["status"] == "active"
    listed = penstock("replays", "orders").stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATUS", "DONE", "OFFSETS", "STARTED"]
    assert listed[1].startswith("Second time  active  0 %   0 to 10")

    def end() -> None:  # what a worker would do
        while (record := orders.registry.find("Pipeline", "orders replay 1")) is None:
            time.sleep(0.05)
        orders.streams.log("raw").move_cursor(Cursor(flow_name(record), 10))
        orders.flows.aim(record, "stopped")

    worker = threading.Thread(target=end)
    worker.start()
    ended = penstock("replay", "orders", "--from", "earliest", "--sink", "lake", "--wait")
    worker.join()
    assert ended.exit_code == 1, "it was stopped"
    assert "stopped orders replay 1: 10 of 10 events" in ended.stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 2),
        (["--all", "--sink", "lake"], 2),
        (["--sink", "lakes"], 3),
        (["--all", "--to", "offset:0"], 1),
    ],
)
def test_what_makes_no_sense(orders: Service, options: list[Any], code: int) -> None:
    refused = penstock("replay", "orders", "--from", "earliest", *options)
    assert refused.exit_code == code, refused.output
    assert "error[" in refused.stderr
