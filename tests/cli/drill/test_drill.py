"""Whole drills: a server, workers, and faults, all of them real."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.drill.check import check_outputs
from penstock.cli.drill.feed import EVENTS
from penstock.cli.drill.subjects import generated_subjects
from tests.cli.commands import Penstock, wait_for
from tests.streams.kit import NIGHTLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(14_400 if NIGHTLY else 900)]

PIPELINES, ROUNDS = (20, 300) if NIGHTLY else (2, 3)
SEED = "9"
"""One whose first three faults are of the three kinds."""

WINDOWS = """\
kind: Stream
metadata: {name: orders}
spec: {schema: "id BIGINT, customer STRING, at TIMESTAMP"}
---
kind: Pipeline
metadata: {name: per second}
spec:
  source: {type: stream, stream: orders}
  processors: [{type: window, time: at, size: 1s, aggregates: {n: "count(*)", total: "sum(id)"}}]
  sinks: [{id: lake, type: http, url: "http://127.0.0.1:9/unused"}]
"""


def drill(penstock: Penstock, *arguments: str) -> tuple[dict[str, Any], str]:
    """The report of a drill that was correct, and its progress."""
    process = penstock.start("drill", "--lease-ms", "3000", "--overlap", "--json", *arguments)
    out, err = process.communicate(timeout=14_000)
    assert process.returncode == 0, out + err
    return json.loads(out), err


def test_a_drill_is_correct_and_its_check_finds_a_planted_fault(penstock: Penstock, tmp_path: Path) -> None:
    report, told = drill(
        penstock,
        *("--pipelines", str(PIPELINES), "--rounds", str(ROUNDS), "--seed", SEED, "--dir", "data"),
    )
    assert len(report["rounds"]) == ROUNDS
    assert {each["kind"] for each in report["rounds"]} == {"kill", "freeze", "cut"}
    assert all(each["takeover_s"] and not each["stuck"] for each in report["rounds"])
    taken = report["takeover_s"]["all"]
    assert 0 < taken["min"] <= taken["median"] <= taken["p90"] <= taken["max"]
    assert report["takeover_s"]["freeze"]["min"] > 2.3, "not before the lease has ended"
    assert f"round {ROUNDS}/{ROUNDS}" in told
    assert report["check"]["expected"] == report["check"]["delivered"] > 0

    root, subjects = tmp_path / "data", generated_subjects(PIPELINES).pipelines
    written = {
        subject.id: EVENTS * len(list((root / "in" / subject.id).glob("*.json"))) for subject in subjects
    }
    assert check_outputs(root, subjects, written).ok
    lines = sorted((root / "out" / subjects[0].id).rglob("*.json"))
    first, *rest = lines[0].read_text().splitlines(keepends=True)
    lines[0].write_text("".join(rest))
    copy = lines[-1].with_name("copy.json")
    shutil.copy(lines[-1], copy)
    found = check_outputs(root, subjects, written).findings
    assert [each.what for each in found] == ["lost", "repeated"]
    assert str(json.loads(first)["id"]) in found[0].message


def test_aggregates_are_compared_with_an_undisturbed_run(penstock: Penstock) -> None:
    file = penstock.write("docs.yaml", WINDOWS)
    report, told = drill(penstock, file, "--rounds", "1", "--faults", "kill", "--workers", "2", "--seed", "1")
    assert "sink lake (http): JSON files" in told
    assert report["check"]["expected"] > 0
    assert list(report["rounds"][0]["takeover_s"]) == ["per_second"]


def test_ctrl_c_ends_a_drill_with_the_report_so_far(penstock: Penstock, tmp_path: Path) -> None:
    process = penstock.start("drill", "--pipelines", "1", "--workers", "2", "--dir", "data", "--json")
    wait_for("its server", lambda: (tmp_path / "data" / "logs" / "worker-2.log").exists())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert (report["check"], report["rounds"]) == (None, [])
