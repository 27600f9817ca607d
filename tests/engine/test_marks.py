"""Marks on dead letters: edits, states, and replays that were cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.letters.states import Mark, Marks, Slice, alone
from penstock.errors import Conflict

SLICE = Slice("r1", 0, "step/clean", (3, 5))


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with Marks.open(tmp_path / "flow", "s", write=False) as marks:
        assert marks.between(0, 100) == {}
        assert marks.states() == {}
    assert not (tmp_path / "flow").exists()


def test_an_edit_can_be_made_and_taken_back(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks, Marks.open(tmp_path, "other") as other:
        marks.edit(3, '{"id": 1}')
        assert marks.between(0, 10)[3].edit == '{"id": 1}'
        assert marks.between(3, 3) == other.between(0, 10) == {}
        marks.edit(3, None)
        assert marks.between(0, 10) == {3: Mark()}


def test_a_letter_that_is_discarded_can_be_restored(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks:
        marks.edit(3, "{}")
        marks.discard(3)
        marks.discard(3)
        assert marks.states() == {"discarded": 1}
        with pytest.raises(Conflict) as refused:
            marks.edit(3, "{}")
        assert refused.value.problems[0].code == "letter_discarded"
        marks.restore(3)
        assert (marks.between(0, 10)[3].state, marks.between(0, 10)[3].edit) == ("new", "{}")


def test_a_replay_that_was_cut_off_is_known_by_its_name(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks:
        marks.edit(5, '{"id": 2}')
        marks.claim(SLICE)
        marks.ack(SLICE, "lake")
    with Marks.open(tmp_path, "s") as marks:
        assert marks.unfinished() == [SLICE]
        assert marks.acked(SLICE) == {"lake"}
        with pytest.raises(Conflict):
            marks.edit(5, "{}")
        with pytest.raises(Conflict):
            marks.discard(5)
        marks.finish(SLICE, {3: "delivered", 5: "failed_again"})
        assert marks.unfinished() == []
        assert marks.acked(SLICE) == set()
        found = marks.between(0, 10)
    assert [found[n].state for n in (3, 5)] == ["replayed", "replayed"]
    assert [[r.outcome for r in found[n].replays] for n in (3, 5)] == [["delivered"], ["failed_again"]]
    assert found[5].edit == '{"id": 2}'


def test_what_is_released_is_as_it_was_before(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks:
        marks.claim(SLICE)
        marks.finish(SLICE, {3: "delivered", 5: "delivered"})
        again = Slice("r2", 0, "start", (3, 4))
        marks.claim(again)
        marks.release(again, [4])
        assert marks.unfinished() == [Slice("r2", 0, "start", (3,))]
        marks.release(again, [3])
        assert marks.unfinished() == []
        assert {n: mark.state for n, mark in marks.between(0, 10).items()} == {
            3: "replayed",
            4: "new",
            5: "replayed",
        }


def test_one_whose_replay_was_cut_off_can_be_given_up(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks:
        marks.claim(SLICE)
        marks.discard(3, cut_off=True)
        assert marks.unfinished() == [Slice("r1", 0, "step/clean", (5,))]
        marks.restore(3)
        assert marks.between(0, 10)[3].state == "new"


def test_what_retention_has_removed_is_forgotten(tmp_path: Path) -> None:
    with Marks.open(tmp_path, "s") as marks:
        marks.claim(SLICE)
        marks.forget_before(4)
        assert marks.unfinished()[0].offsets == (5,)
        marks.forget_before(6)
        assert marks.unfinished() == []
        assert marks.between(0, 10) == {}


def test_only_one_replays(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(Conflict, match="being replayed"), alone(tmp_path):
        raise AssertionError
    with alone(tmp_path):
        pass
