"""Kill -9 of writers, at random and at every named step: what was acknowledged is there, and nothing else."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.streams.kit import NIGHTLY

KILLS = 600 if NIGHTLY else 60

STEPS = (
    "append",
    "written",
    "publish",
    "seal",
    "index",
    "rename",
    "directory sync",
    "roll",
    "retention delete",
    "cursor",
    "recovery",
)
PER_LIFE = 5
"""Kills that one stream sees before another is made: it is read from its beginning after each round."""

SMALL = {"segment_bytes": 3000, "retention_ms": None, "max_segments": 100_000, "batch": {"max_events": 7}}


def life(steps: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """A stream with small segments, so that all of its steps come often."""
    plan = {
        "kills": PER_LIFE,
        "memory": False,
        "idempotent": True,
        "drop_tail": False,
        "spec": {"wal": SMALL},
    }
    return {**plan, "steps": steps, **changes}


def wal(**changes: Any) -> dict[str, Any]:
    return {"wal": {**SMALL, **changes}}


AT_RANDOM = [
    life(spec=spec, memory=not spec["wal"].get("enabled", True), drop_tail=drop_tail, idempotent=idempotent)
    for idempotent in (True, False)
    for spec, drop_tail in (
        (wal(), False),
        (wal(), True),
        (wal(sync=True), False),
        (wal(sync=True, compression="none"), True),
        (wal(max_segments=5), False),
        (wal(enabled=False), False),
    )
]


def campaign(directory: Path, lives: list[dict[str, Any]], kills: int) -> dict[str, Any]:
    """Run lives, one after another and over again, until there were enough kills."""
    wanted = [lives[i % len(lives)] for i in range(-(-kills // max(PER_LIFE, len(lives[0]["steps"]))))]
    seed = random.randrange(1 << 30)
    plan = {"directory": str(directory), "seed": seed, "lives": wanted}
    command = [sys.executable, "-m", "tests.streams.crash.campaign", json.dumps(plan)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"] >= kills
    return found


@pytest.mark.slow
def test_kills_at_random(tmp_path: Path) -> None:
    campaign(tmp_path, AT_RANDOM, KILLS)


@pytest.mark.slow
def test_kills_at_every_step(tmp_path: Path) -> None:
    lives = [
        life(STEPS, idempotent=idempotent, spec=wal(max_segments=8, sync=sync))
        for idempotent, sync in ((True, True), (False, False), (True, False), (False, True))
    ]
    found = campaign(tmp_path, lives, KILLS // 2)
    assert set(found["died_at"]) == set(STEPS)


def test_every_step_of_the_log_is_known_here() -> None:
    source = Path(__file__).parents[3] / "penstock" / "streams"
    files = ("files", "local/writer", "cursors", "local/retention", "local/recovery")
    found = {
        name for file in files for name in re.findall(r'step\("(.*?)"\)', (source / f"{file}.py").read_text())
    }
    assert found == set(STEPS)
