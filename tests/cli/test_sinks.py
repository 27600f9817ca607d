"""`penstock sinks` and `penstock catch-up` against a real server, with the ledger of a flow that rests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.connectors.base import DeliveryId
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory
from penstock.engine.delivery.ledger import Ledger, Span
from tests.api.kit import judging, open_service, pipeline, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_service(tmp_path_factory.mktemp("sinks")) as found, judging(found):
        yield found


@pytest.fixture
def ledger(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    sinks = [{"type": "drop"}, {"id": "mirror", "type": "console", "required": False}]
    with running(service) as api:
        monkeypatch.setenv("PENSTOCK_SERVER", api.url)
        record = service.create("Pipeline", pipeline("orders", sinks=sinks)).record
        yield Ledger(flow_directory(service.settings, record))


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_what_a_sink_has_missed_is_told(ledger: Ledger, tmp_path: Path) -> None:
    for batch in range(3):
        span = Span(batch * 10, batch * 10 + 10)
        ledger.acked(DeliveryId("orders", "drop", "life", batch), span)
        mirror = DeliveryId("orders", "mirror", "life", batch)
        if batch:
            ledger.missed(mirror, span, "file", "key", events=7)
        else:
            ledger.missed(mirror, span, "lost", "key", events=9, why="storage for missed batches is full")
    ledger.failed("mirror", "connection refused")

    shown = penstock("sinks", "orders")
    assert shown.exit_code == 0, shown.output
    assert "mirror misses 2 batches, offsets 10 to 29" in shown.stdout
    assert "mirror lost 1 batch, offsets 0 to 9" in shown.stdout
    assert "connection refused" in shown.stdout

    drop, mirror_ = json.loads(penstock("sinks", "orders", "--json").stdout)
    assert (drop["state"], drop["cursor"], drop["gaps"]) == ("in_sync", 30, [])
    assert (mirror_["state"], mirror_["cursor"], mirror_["lag"]) == ("behind", 10, 14)
    assert [gap["kept"] for gap in mirror_["gaps"]] == ["file", "lost"]

    refused = penstock("catch-up", "orders", "mirror")
    assert refused.exit_code == 1
    assert "resume it" in refused.output
    assert penstock("catch-up", "orders", "nobody").exit_code == 1
