"""Who follows the advice of the overview gets where it says, on a server whose worker runs pipelines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from tests.api.kit import Api, pipeline, stream
from tests.cli.commands import wait_for
from tests.flows import json_rows

pytestmark = pytest.mark.slow

NUMBERS = {"type": "generate", "count": 10}


def lake(blocked: Path, **options: Any) -> dict[str, Any]:
    return {"id": "lake", "type": "file", "path": str(blocked / "out"), "format": "json", **options}


def attention(live: Api, code: str, name: str) -> dict[str, Any] | None:
    """What the overview says of a document under a code."""
    found = live.client.get("/overview").json()["attention"]
    return next((each for each in found if (each["code"], each["id"]) == (code, name)), None)


def told(live: Api, code: str, name: str) -> dict[str, Any]:
    """What the overview says once it says it."""
    wait_for(code, lambda: attention(live, code, name))
    found = attention(live, code, name)
    assert found is not None
    return found


def follow(live: Api, advice: str) -> list[str]:
    """Type the commands of an advice; what they print."""
    commands = re.findall(r"`penstock ([^`]+)`", advice)
    results = [CliRunner().invoke(app, [*command.split(), "--server", live.url]) for command in commands]
    assert [result.exit_code for result in results] == [0] * len(commands), [r.output for r in results]
    assert commands
    return [result.output for result in results]


def status(live: Api, name: str) -> str:
    return str(live.client.get(f"/pipelines/{name}").json()["status"])


def test_a_sink_that_fails_shows_its_error_and_goes_on_by_itself(live: Api, blocked: Path) -> None:
    sinks = [lake(blocked, retries=10_000, deadline_ms=3_600_000, backoff_ms=100)]
    body = pipeline("orders", "active", source=NUMBERS, sinks=sinks)
    live.client.post("/pipelines", json=body).raise_for_status()
    found = told(live, "sink_failing", "orders")
    assert (found["severity"], found["kind"]) == ("warning", "Pipeline")
    assert found["message"].startswith("Sink 'lake' of pipeline 'orders' rejects its batch: ")
    (shown,) = follow(live, found["advice"])
    assert "failing" in shown
    assert "last error at spec.sinks[0]: sink 'lake': " in shown
    assert "automatically" in found["advice"]
    blocked.unlink()
    wait_for("the end", lambda: status(live, "orders") == "completed")
    wait_for("silence", lambda: attention(live, "sink_failing", "orders") is None)
    assert live.client.get("/pipelines/orders/sinks").json()[0]["state"] == "in_sync"
    assert sorted(row["seq"] for row in json_rows(blocked / "out")) == list(range(10))


def test_a_flow_that_has_failed_or_was_paused_after_a_failure_runs_again(live: Api, blocked: Path) -> None:
    effort = {"retries": 0}
    for name, restart in (
        ("gave_up", {"max_attempts": 1}),
        ("tries", {"max_attempts": 100, "backoff_ms": 600_000, "max_backoff_ms": 600_000}),
    ):
        sinks = [{**lake(blocked, **effort), "path": str(blocked / name)}]
        body = pipeline(name, "active", source=NUMBERS, sinks=sinks, restart=restart)
        live.client.post("/pipelines", json=body).raise_for_status()
    assert told(live, "failed", "gave_up")["severity"] == "error"
    assert "automatically" in told(live, "backing_off", "tries")["advice"]
    live.client.post("/pipelines/tries/pause").raise_for_status()
    advice = [told(live, "failed", "gave_up")["advice"], told(live, "paused_with_error", "tries")["advice"]]
    assert ["penstock start gave_up" in advice[0], "penstock resume tries" in advice[1]] == [True, True]
    blocked.unlink()
    for each in advice:
        follow(live, each)
    for name, code in (("gave_up", "failed"), ("tries", "paused_with_error")):
        wait_for("the end", lambda name=name: status(live, name) == "completed")
        wait_for("silence", lambda name=name, code=code: attention(live, code, name) is None)
        assert len(json_rows(blocked / name)) == 10


def test_dead_letters_are_replayed_after_the_step_is_fixed(live: Api, tmp_path: Path) -> None:
    client = live.client
    client.post("/streams", json=stream("numbers", schema="id INT")).raise_for_status()
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    steps = [{"id": "share", "type": "map", "set": {"share": "6 DIV id"}}]
    source = {"type": "stream", "stream": "numbers"}
    body = pipeline("orders", "active", source=source, sinks=sinks, processors=steps)
    client.post("/pipelines", json=body).raise_for_status()
    wait_for("a start", lambda: client.get("/pipelines/orders").json()["phase"] == "running")
    client.post("/streams/numbers/events", json=[{"id": id} for id in (0, 1, 2)]).raise_for_status()
    found = told(live, "dead_letters", "orders")
    assert "could not process 1 event in the last 10 minutes" in found["message"]
    (listed,) = follow(live, found["advice"])
    assert "1 letter in total: share" in listed
    reason = client.get("/pipelines/orders/dead-letters").json()["letters"][0]["reason"]
    assert reason.endswith("Use `try_divide` to tolerate divisor being 0 and return NULL instead.")
    fixed = {"processors": [{**steps[0], "set": {"share": "try_divide(6, id)"}}]}
    client.patch("/pipelines/orders", json={"spec": fixed}).raise_for_status()

    def letters(*command: str) -> Any:
        return CliRunner().invoke(app, ["dead-letters", *command, "--server", live.url])

    assert letters("discard", "orders", "0").exit_code == 0
    refused = letters("replay", "orders", "--offset", "0")
    assert refused.exit_code == 1
    undo = re.search(r"`penstock dead-letters ([^`]+)`", " ".join(refused.output.split()))
    assert undo is not None, refused.output
    assert letters(*undo[1].replace("NAME", "orders").split()).exit_code == 0
    replayed = letters("replay", "orders", "--offset", "0")
    assert replayed.exit_code == 0, replayed.output
    wait_for("all events", lambda: len(json_rows(tmp_path / "out")) == 3)
    again = letters("replay", "orders", "--offset", "0")
    assert (again.exit_code, "--again" in again.output) == (1, True)
    client.delete("/pipelines/orders").raise_for_status()
