"""`penstock logs`, `restart` and `story` against a real server, with the log of a flow that rests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory
from penstock.engine.runtime.flow_log import FlowLog
from tests.api.kit import judging, open_service, pipeline, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_service(tmp_path_factory.mktemp("logs")) as found, judging(found):
        yield found


@pytest.fixture
def log(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlowLog]:
    with running(service) as api:
        monkeypatch.setenv("PENSTOCK_SERVER", api.url)
        record = service.create("Pipeline", pipeline("orders")).record
        made = FlowLog("orders", flow_directory(service.settings, record))
        made.begin()
        yield made
        service.import_([], "replace", dry_run=False)


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_log_is_shown(log: FlowLog) -> None:
    log.info("started", revision=1)
    log.warning("delivery failed: no route", sink="lake", batch=7)
    first, second = penstock("logs", "orders").stdout.splitlines()
    assert first.endswith("info    started  revision=1")
    assert second.endswith("warning lake: delivery failed: no route  batch=7")
    (line,) = penstock("logs", "orders", "--level", "warning", "--json").stdout.splitlines()
    assert (json.loads(line)["sink"], json.loads(line)["fields"]) == ("lake", {"batch": 7})
    assert len(penstock("logs", "orders", "--limit", "1").stdout.splitlines()) == 1
    assert penstock("logs", "nobody").exit_code == 1


def test_the_log_is_followed_until_the_flow_is_gone(
    log: FlowLog, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.info("started")
    seen: list[str] = []

    def show(lines: list[dict[str, Any]], *, as_json: bool) -> None:
        seen.extend(line["message"] for line in lines)
        if seen == ["started"]:
            log.info("ready")
        else:
            service.delete("Pipeline", "orders")

    monkeypatch.setattr("penstock.cli.flow_logs._show", show)
    shown = penstock("logs", "orders", "--follow")
    assert (shown.exit_code, seen) == (0, ["started", "ready"]), shown.output


def test_what_cannot_be_done_is_told(log: FlowLog) -> None:
    refused = penstock("restart", "orders")
    assert (refused.exit_code, "use resume" in refused.output) == (1, True)
    refused = penstock("story", "orders", "--offset", "0")
    assert (refused.exit_code, "error[no_stream]" in refused.output) == (1, True)
