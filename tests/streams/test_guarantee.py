"""The sentence that says what an acknowledgement means, against a stream that is filled beyond its limits."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Backpressure
from penstock.specs.stream import StreamSpec
from penstock.streams.committer import Dropped
from penstock.streams.guarantee import guarantee
from penstock.streams.home import StreamHome
from penstock.streams.log import Log
from penstock.streams.storage import Cursor
from tests.streams.kit import fast_directory, opened, raw, values

LIMITS = ("segments", "unread")
REMOVED = ("evicted_retention_bytes", "evicted_max_segments", "dropped_no_reader")
READERS = ("none", "registered", "has run", "has read all")
COMBINATIONS = [
    {"enabled": enabled, "on_full": on_full, "mode": mode, "spill": spill, "storage": storage, "limit": limit}
    for enabled, on_full, mode, spill, storage, limit in itertools.product(
        (True, False), ("drop_oldest", "block"), ("block", "drop", "timeout"), (True, False),
        ("local", "sqlite"), LIMITS,
    )
    if enabled or storage == "local"  # others are refused when they are saved
]  # fmt: skip


@dataclass(frozen=True)
class Promise:
    """What a sentence says."""

    drops_oldest: bool
    waits: bool
    drops_new: bool
    timeout: bool
    survives_restart: bool

    @classmethod
    def read(cls, text: str, *, has_reader: bool) -> Promise:
        drops = "a full stream drops its oldest events, counted" in text
        drops_unwanted = "a full stream that has no reader drops its oldest events, counted" in text
        return cls(
            drops_oldest=drops or (drops_unwanted and not has_reader),
            waits="When the buffer is full, producers wait." in text,
            drops_new="When the buffer is full, new events are dropped and counted." in text,
            timeout=re.search(
                r"When the buffer is full, producers wait 20 ms; then the events are dropped", text
            )
            is not None,
            survives_restart="not a restart of Penstock" not in text,
        )


def spec_of(combination: dict[str, Any]) -> StreamSpec:
    """A stream that is soon full."""
    unread = combination["limit"] == "unread"
    wal = {
        "enabled": combination["enabled"],
        "on_full": combination["on_full"],
        "segment_bytes": 20_000,
        "max_segments": 4,
        "retention_bytes": 128 * 1024,
    }
    buffer = {"mode": combination["mode"], "spill": combination["spill"], "timeout_ms": 20, "max_events": 8}
    buffer |= {"max_unread": 5} if unread else {}
    return StreamSpec.model_validate({"wal": wal, "buffer": buffer, "storage": combination["storage"]})


def fill(log: Log, reader: str) -> tuple[list[bytes], list[BaseException]]:
    """Append more than there is room for: what was acknowledged, and the refusals."""
    kept: list[bytes] = []
    refused: list[BaseException] = []
    for number in range(16):
        value = random.Random(number).randbytes(16_000)  # no codec makes it smaller
        try:
            log.append(raw([value]), wait_s=0.03 if log.storage.spec.buffer.mode == "block" else None)
        except (Backpressure, Dropped) as error:
            refused.append(error)
            if len(refused) == 2:
                break
            continue
        kept.append(value)
        if reader == "has read all":
            log.move_cursor(Cursor("r", log.bounds().next))
    return kept, refused


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda c: "-".join(str(v) for v in c.values()))
def test_a_stream_does_what_its_sentence_says(combination: dict[str, Any], reader: str) -> None:
    with fast_directory() as directory:
        check(directory, combination, reader)


def check(root: Path, combination: dict[str, Any], reader: str) -> None:
    """Fill a stream, and compare what happens with what its sentence says."""
    spec = spec_of(combination)
    home = StreamHome(root / "streams", root / "memory")
    directory = home.ensure("s", "abcdefgh", spec)
    promise = Promise.read(guarantee(spec), has_reader=reader != "none")
    assert [promise.waits, promise.drops_new, promise.timeout].count(True) == 1
    with opened(directory) as log:
        if reader == "registered":
            log.storage.expect(["r"])
        elif reader != "none":
            log.move_cursor(Cursor("r", 0))
        kept, refused = fill(log, reader)
        bounds, counts = log.bounds(), dict(log.storage.counts())
        assert len(kept) == bounds.next
        if spec.wal.enabled or reader == "none":  # else it was removed because all have read it
            assert sum(counts[name] for name in REMOVED) == bounds.first
        assert values(log, bounds.first) == kept[bounds.first :]
        if reader == "has read all":
            assert not refused
            assert counts["evicted_unread"] == 0
        elif bounds.first > 0:
            assert promise.drops_oldest, "an acknowledged event was dropped that should have been kept"
        else:
            assert refused, "it was never full"
            if promise.waits:
                assert all(isinstance(error, Backpressure) for error in refused)
            else:
                reason = "timeout" if promise.timeout else "buffer_full"
                assert [error.reason for error in refused if isinstance(error, Dropped)] == [reason] * 2
        dropped = sum(isinstance(error, Dropped) for error in refused)
        assert counts["dropped_buffer_full"] + counts["dropped_timeout"] == dropped
        if promise.drops_oldest and combination["limit"] == "segments":
            assert bounds.first > 0
    home.forget_transient()
    with opened(directory) as log:
        log.storage.maintain()
        first = log.bounds().first
        assert values(log, first) == (kept[first:] if promise.survives_restart else [])
        if promise.survives_restart and not promise.drops_oldest and reader != "has read all":
            assert first == 0
