"""The check of a drill: each kind of fault in its outputs is found."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from penstock.cli.drill.check import Verdict, check_outputs, findings_of_rounds
from penstock.cli.drill.subjects import Subject, generated_subjects

EVENTS = 20


@pytest.fixture
def subject() -> Subject:
    return generated_subjects(1).pipelines[0]


@pytest.fixture
def outputs(tmp_path: Path, subject: Subject) -> Path:
    """The right outputs, in two batches that became visible one after the other."""
    rows = [json.loads(row) for row in subject.model(EVENTS)]
    directory = tmp_path / "out" / subject.id / "out"
    for number, part in enumerate((rows[:8], rows[8:])):
        write_batch(directory, number, part)
    return directory


def write_batch(directory: Path, number: int, rows: list[dict[str, object]]) -> Path:
    staged = directory / f".staged-{number}"
    staged.mkdir(parents=True)
    (staged / "part-0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (staged / "_SUCCESS").touch()
    return staged.rename(directory / f"penstock_batch=abc-{number:010d}")


def checked(root: Path, subject: Subject) -> Verdict:
    return check_outputs(root, [subject], {subject.id: EVENTS})


def found(verdict: Verdict) -> list[tuple[str, int]]:
    return [(each.what, each.events) for each in verdict.findings]


def test_right_outputs_pass(tmp_path: Path, subject: Subject, outputs: Path) -> None:
    verdict = checked(tmp_path, subject)
    assert (verdict.ok, verdict.expected, verdict.delivered) == (True, 17, 17), "ids 3, 10 and 17 are dropped"


def test_a_missing_line_is_lost(tmp_path: Path, subject: Subject, outputs: Path) -> None:
    file = outputs / "penstock_batch=abc-0000000001" / "part-0.json"
    first, *rest = file.read_text().splitlines(keepends=True)
    file.write_text("".join(rest))
    verdict = checked(tmp_path, subject)
    assert found(verdict) == [("lost", 1)]
    assert str(json.loads(first)["id"]) in verdict.findings[0].message


def test_a_line_that_comes_twice_is_repeated(tmp_path: Path, subject: Subject, outputs: Path) -> None:
    file = outputs / "penstock_batch=abc-0000000000" / "part-0.json"
    file.write_text(file.read_text() + file.read_text().splitlines(keepends=True)[0])
    assert found(checked(tmp_path, subject)) == [("repeated", 1)]


def test_a_row_that_no_event_gives_is_unknown(tmp_path: Path, subject: Subject, outputs: Path) -> None:
    write_batch(outputs, 2, [{"id": 3, "text": "TEXT-3"}])
    assert found(checked(tmp_path, subject)) == [("unknown", 1)]


def test_an_older_batch_after_a_newer_one_is_of_a_second_writer(
    tmp_path: Path, subject: Subject, outputs: Path
) -> None:
    late = outputs / "penstock_batch=abc-0000000000"
    time.sleep(0.05)  # longer than the clock of the file system takes to move on
    late.rename(outputs / ".aside").rename(late)  # it becomes visible again, after its successor
    assert [each.what for each in checked(tmp_path, subject).findings] == ["two_writers"]


def test_without_a_model_the_truth_is_the_undisturbed_copy(tmp_path: Path) -> None:
    subject = Subject("mine", "id BIGINT", {}, ("lake",))
    write_batch(tmp_path / "out" / "mine" / "lake", 0, [{"n": 1}, {"n": 2}])
    write_batch(tmp_path / "truth" / "mine" / "lake", 0, [{"n": 2}])
    write_batch(tmp_path / "truth" / "mine" / "lake", 1, [{"n": 1}])
    assert checked(tmp_path, subject).ok, "in whatever order and batches"
    write_batch(tmp_path / "truth" / "mine" / "lake", 2, [{"n": 1}])
    assert found(checked(tmp_path, subject)) == [("lost", 1)]


def test_faults_that_the_drill_has_seen_are_findings() -> None:
    findings = findings_of_rounds(["p: epoch 1 wrote after epoch 2"], {1: [], 2: ["q"]})
    assert [(each.what, each.pipeline) for each in findings] == [
        ("two_writers", "p"),
        ("not_taken_over", "q"),
    ]
