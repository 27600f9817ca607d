"""More streams than a server has descriptors: idle logs close their files, and open them again on demand."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.api.kit import stream
from tests.penstock_process import Running, penstock_up

pytestmark = pytest.mark.slow

NIGHTLY = bool(os.environ.get("PENSTOCK_TEST_NIGHTLY"))
FILES, STREAMS = (1024, 10_000) if NIGHTLY else (128, 300)
START_S = 300.0 if NIGHTLY else 120.0
MEMORY = 1_500 if NIGHTLY else 400
"""Megabytes that the server may take."""


def send(server: Running, number: int, text: str) -> None:
    path = f"/streams/s{number}/events"
    sent = server.client.post(path, content=text, headers={"Content-Type": "text/plain"})
    assert sent.status_code == 200, (number, sent.text)


def read(server: Running, number: int) -> list[str]:
    found = server.client.get(f"/streams/s{number}/events")
    assert found.status_code == 200, (number, found.text)
    return [event["value"] for event in found.json()["events"]]


@pytest.mark.timeout(1800)
def test_more_streams_than_descriptors(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with penstock_up(home, files=FILES) as server:
        for begin in range(0, STREAMS, 500):
            several = [stream(f"s{number}") for number in range(begin, min(begin + 500, STREAMS))]
            saved = server.client.post("/bundle", json={"documents": several}, timeout=600)
            assert saved.status_code == 200, saved.text
        for number in range(STREAMS):
            send(server, number, f"first of {number}")
        for number in range(0, STREAMS, 7):
            assert read(server, number) == [f"first of {number}"]
        assert server.process.num_fds() < FILES
    began = time.monotonic()
    with penstock_up(home, files=FILES) as server:
        took = time.monotonic() - began
        for number in range(0, STREAMS, 5):
            send(server, number, "second")
            assert read(server, number) == [f"first of {number}", "second"]
        print(f"{STREAMS} streams, {FILES} descriptors: start {took:.1f} s, {server.megabytes:.0f} MB")
        assert server.process.num_fds() < FILES
        assert took < START_S
        assert server.megabytes < MEMORY
