"""Ten minutes under load, with kills and faults: nothing is lost, and no process grows.

`PENSTOCK_SOAK` sets the seconds, `PENSTOCK_SOAK_PLOTS` a directory for the curves.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.plot import plot
from tests.cli.commands import wait_for
from tests.crash.soak import BAD_EVERY, SAMPLE_S, Sampler, Sender, Service, documents, event, growth
from tests.product import Product

SOAK_S = float(os.environ.get("PENSTOCK_SOAK", 600))
KILLS = 3
"""First the worker is killed so often; then its processes stay for `SOAK_S`, and must not grow."""

STEADY_S = 30.0
"""Seconds that the flows run between two kills."""

WARM = 0.4
"""The part of the time after the last kill in which memory may grow: heaps fill, code is compiled."""

FAULT_EVERY_S, FAULT_S = 30.0, 5.0
SETTLED_S = 300.0

MEMORY, DESCRIPTORS, THREADS = 0.08, 10, 10
"""By how much a role may grow after the warm-up: part of its memory, and numbers."""
SMALL = 30e6
"""Bytes that any role may grow."""


@pytest.mark.slow
@pytest.mark.timeout(SOAK_S + 1200)
def test_nothing_is_lost_and_nothing_grows(tmp_path: Path) -> None:
    service = Service()
    (tmp_path / "product").mkdir()
    # A heap that is full after minutes shows growth outside of it, and fills long before the test ends.
    (tmp_path / "product" / "penstock.toml").write_text('[spark]\n"spark.driver.memory" = "512m"\n')
    product = Product(tmp_path / "product")
    try:
        product.up()
        assert product.process is not None
        saved = product.client.post("/bundle", json=documents(tmp_path, service.server.url))
        assert saved.status_code == 200, saved.text
        sampler, sender = Sampler(product.process.pid), Sender(str(product.client.base_url).rstrip("/"))
        with sender.sending():
            ready = _run(product, service, sampler)
        good, bad = _counts(sender.sent)
        sender.send([event(1, timedelta(days=1))])  # closes all windows
        _draw(sampler)
        _check_delivered(product, service, tmp_path, good, bad)
    finally:
        service.server.stop()
        product.close()
    print(f"{sender.sent:,} events, {bad:,} bad ones, {sender.refused} refused requests, {KILLS} kills")
    _check_flat(sampler, ready + WARM * SOAK_S)


def _run(product: Product, service: Service, sampler: Sampler) -> float:
    """Kill workers, then let the last one work; when that one was ready."""
    for _ in range(KILLS):
        _steady(STEADY_S, service, sampler)
        product.kill_worker()
        wait_for("the next worker", lambda: product.client.get("/readyz").status_code == 200)
    ready = time.monotonic() - sampler.began
    _steady(SOAK_S, service, sampler)
    return ready


def _steady(seconds: float, service: Service, sampler: Sampler) -> None:
    """Take samples for a while. Now and then the service fails."""
    until, next_fault, away = time.monotonic() + seconds, time.monotonic() + FAULT_EVERY_S / 2, False
    while (now := time.monotonic()) < until:
        sampler.sample()
        if now > next_fault:
            next_fault, away = now + FAULT_EVERY_S, not away
            _fail(service, away=away)
        time.sleep(SAMPLE_S)


def _fail(service: Service, *, away: bool) -> None:
    """Let the service refuse connections, or answer 500, for a while."""
    service.failing = not away
    if away:
        service.server.stop()
    time.sleep(FAULT_S)
    if away:
        service.server.start()
    service.failing = False


def _counts(sent: int) -> tuple[int, int]:
    bad = len(range(0, sent, BAD_EVERY))
    return sent - bad, bad


def _check_delivered(product: Product, service: Service, directory: Path, good: int, bad: int) -> None:
    """Each sink has every good event, the exact ones once, and the dead letters have the others."""
    last = good + 1  # the event that closes the windows

    def stats(stream: str) -> int:
        return int(product.client.get(f"/streams/{stream}/stats").json()["next"])

    for stream, expected in (("orders", last), ("scripted", last), ("pipeline:intake.dead", bad)):
        wait_for(f"{expected} events in {stream}", lambda: stats(stream) >= expected, SETTLED_S)  # noqa: B023
        assert stats(stream) == expected
    wait_for("all windows", lambda: _windowed(product) >= good, SETTLED_S)
    assert _windowed(product) == good
    wait_for("all events at the service", lambda: len(service.ids) >= good, SETTLED_S)
    assert len(service.ids) == good  # the last event has an id that was there before
    lines = [
        json.loads(line)["id"]
        for file in (directory / "orders").rglob("*.json*")
        for line in file.read_text().splitlines()
    ]
    assert (len(lines), len(set(lines))) == (last, good)


def _windowed(product: Product) -> int:
    """The events in all windows that were delivered."""
    found, position = 0, "earliest"
    while True:
        page: dict[str, Any] = product.client.get(
            "/streams/windows/events", params={"position": position, "limit": 1000}
        ).json()
        found += sum(json.loads(each["value"])["orders"] for each in page["events"])
        if not page["events"]:
            return found
        position = f"offset:{page['events'][-1]['offset'] + 1}"


def _check_flat(sampler: Sampler, since: float) -> None:
    problems = []
    for what, value, part, least in (
        ("memory", lambda sample: sample.memory, MEMORY, SMALL),
        ("descriptors", lambda sample: sample.descriptors, 0.0, DESCRIPTORS),
        ("threads", lambda sample: sample.threads, 0.0, THREADS),
    ):
        for role, curve in sampler.totals(value).items():
            level, more = growth(curve, since)
            print(f"{role}, {what}: {level:,.0f}, grew by {more:,.0f}")
            if more > max(least, part * level):
                problems.append(f"the {what} of {role} grew from {level:,.0f} by {more:,.0f}")
    assert problems == []


def _draw(sampler: Sampler) -> None:
    if "PENSTOCK_SOAK_PLOTS" not in os.environ:
        return
    plots = Path(os.environ["PENSTOCK_SOAK_PLOTS"])
    title, x = f"{SOAK_S / 60:g} minutes under load", "minutes"

    def curves(value: Any) -> dict[str, list[tuple[float, float]]]:
        found = sampler.totals(value)
        return {role: [(at / 60, y) for at, y in curve] for role, curve in found.items() if role != "guard"}

    plot(
        plots / "soak-memory.svg",
        f"Memory, {title}",
        x,
        "MiB",
        curves(lambda s: s.memory / 2**20),
        linear=True,
    )
    plot(
        plots / "soak-descriptors.svg",
        f"Descriptors, {title}",
        x,
        "descriptors",
        curves(lambda s: s.descriptors),
        linear=True,
    )
