from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.monitor import history as module
from penstock.control.monitor.history import MINUTE_MS, SAVED_MS, STEP_MS, History, Ring
from penstock.control.monitor.history_file import HistoryFile

T0 = 1_700_000_040_000
"""The beginning of a minute."""


def fed(minutes: float) -> History:
    """A history whose one number counts its samples."""
    history = History()
    for i in range(int(minutes * MINUTE_MS / STEP_MS)):
        history.add(T0 + i * STEP_MS, {"a": {"n": i}})
    return history


def test_it_begins_when_it_begins() -> None:
    history = History()
    assert history.read("a", 15).at == []
    history.add(T0, {"a": {"n": 1.0}})
    history.add(T0 + STEP_MS, {"a": {"n": None, "late": 2.0}})
    found = history.read("a", 15)
    assert (found.step_ms, found.at) == (STEP_MS, [T0, T0 + STEP_MS])
    assert found.series == {"n": [1.0, None], "late": [None, 2.0]}
    assert history.read("b", 15).series == {}


def test_a_young_one_has_all_in_the_fine_resolution() -> None:
    found = fed(10).read("a", 1440)
    assert (found.step_ms, len(found.at)) == (STEP_MS, 300)


def test_an_old_one_has_the_last_minutes_fine_and_the_rest_by_minute() -> None:
    history = fed(60)
    fine = history.read("a", 15)
    assert (fine.step_ms, len(fine.at), fine.at[0]) == (STEP_MS, 450, T0 + 45 * MINUTE_MS)
    assert fine.series["n"] == list(range(1350, 1800))
    assert len(history.read("a", 1).at) == 30
    coarse = history.read("a", 60)
    assert coarse.step_ms == MINUTE_MS
    assert coarse.at == [T0 + i * MINUTE_MS for i in range(59)]  # the last minute is not over
    assert coarse.series["n"][:2] == [14.5, 44.5]  # the means
    assert len(history.read("a", 20).at) == 20


def test_nothing_is_told_of_a_time_without_a_look() -> None:
    history = History()
    for step in (0, 1, 2, 10, 11):
        history.add(T0 + step * STEP_MS, {"a": {"n": 7}})
    found = history.read("a", 15)
    assert [(at - T0) // STEP_MS for at in found.at] == [0, 1, 2, 3, 10, 11]
    assert found.series["n"] == [7, 7, 7, None, 7, 7]


def test_two_looks_at_one_moment_are_one() -> None:
    history = History()
    history.add(T0, {"a": {"n": 1}})
    history.add(T0 + 100, {"a": {"n": 2}})
    assert history.read("a", 15).series == {"n": [1]}


def test_what_is_gone_is_forgotten_and_a_namesake_begins_anew() -> None:
    history = History()
    history.add(T0, {"a": {"n": 1}, "b": {"n": 1}})
    history.forget("b")
    history.add(T0 + STEP_MS, {"b": {"n": 2}})
    assert history.read("a", 15).at == []
    assert history.read("b", 15).series == {"n": [2]}


def test_what_does_not_change_takes_no_room() -> None:
    ring = Ring(STEP_MS, 450)
    for slot in range(10_000):
        ring.add(slot, {"a": {"n": 3.0, "m": None}})
    (track,) = ring._tracks.values()
    assert len(track.rows) == 1
    assert len(ring.read("a", 0).at) == 450


def test_very_many_keys_have_a_shorter_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 1000)
    ring = Ring(STEP_MS, 450)
    for slot in range(300):
        ring.add(slot, {str(key): {"n": slot} for key in range(10)})
    found = ring.read("3", 0)
    assert found.series["n"] == list(range(200, 300))
    assert found.at[0] == 200 * STEP_MS


VALUES = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.one_of(st.none(), st.integers(0, 3).map(float)), max_size=3
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), VALUES), max_size=60), st.integers(3, 20), st.integers(0, 60))
def test_a_ring_tells_what_a_plain_list_would(
    steps: list[tuple[int, dict[str, float | None]]], length: int, since: int
) -> None:
    ring, told, slot = Ring(1, length), [], 0
    for pause, values in steps:
        slot += pause
        ring.add(slot, {"key": values})
        told.append((slot, values))
    expected = [(slot, values) for slot, values in told[-length:] if slot >= since]
    found = ring.read("key", since)
    assert found.at == [slot for slot, _ in expected]
    for name, numbers in found.series.items():
        assert numbers == [values.get(name) for _, values in expected]
        assert not any(number is not None and math.isnan(number) for number in numbers)
    assert {name for _, values in expected for name in values} <= set(found.series)


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    first = History(HistoryFile(tmp_path))
    for i in range(90):  # three minutes
        first.add(T0 + i * STEP_MS, {"a": {"n": i // 10, "m": None}, "gone": {"n": 1}})
        first.save(T0 + i * STEP_MS)
    first.add(T0 + 90 * STEP_MS, {"a": {"n": 9, "m": None}})
    first.save()
    again = History(HistoryFile(tmp_path))
    assert again.read("a", 15) == first.read("a", 15)
    assert again.read("gone", 15).series == {}, "a document that was deleted"
    again.add(T0 + 120 * STEP_MS, {"a": {"n": 7}})
    found = again.read("a", 15)
    assert found.at[:2] == [T0, T0 + STEP_MS]
    assert found.series["n"][-2:] == [None, 7], "nothing is known of the time between"


def test_a_kill_loses_the_last_seconds_only(tmp_path: Path) -> None:
    history = History(HistoryFile(tmp_path))
    for i in range(21):
        history.add(T0 + i * STEP_MS, {"a": {"n": i}})
        history.save(T0 + i * STEP_MS)
    kept = History(HistoryFile(tmp_path)).read("a", 15).at
    assert T0 + 20 * STEP_MS - kept[-1] <= SAVED_MS


def test_the_file_keeps_no_more_than_memory(tmp_path: Path) -> None:
    history = History(HistoryFile(tmp_path))
    for i in range(1000):
        history.add(T0 + i * STEP_MS, {"a": {"n": i}, "still": {"n": 1}})
    history.save()
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as db:
        query = "SELECT COUNT(*) FROM rows WHERE step = ? AND key = ?"
        assert db.execute(query, (STEP_MS, "a")).fetchone() == (450,)
        assert db.execute(query, (STEP_MS, "still")).fetchone() == (1,)
        assert db.execute("SELECT COUNT(*) FROM moments WHERE step = ?", (STEP_MS,)).fetchone() == (450,)
    assert len(History(HistoryFile(tmp_path)).read("still", 15).at) == 450


def test_a_damaged_file_costs_only_the_past(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").write_bytes(b"no database" * 100)
    history = History(HistoryFile(tmp_path))
    history.add(T0, {"a": {"n": 1}})
    history.save()
    assert history.read("a", 15).series == {"n": [1]}


def test_a_time_range_has_the_finest_resolution_that_covers_it() -> None:
    history = fed(60)
    begin, end = T0 + 50 * MINUTE_MS, T0 + 51 * MINUTE_MS
    fine = history.between("a", begin, end)
    assert (fine.step_ms, fine.at[0], fine.at[-1]) == (STEP_MS, begin, end)
    coarse = history.between("a", T0 + 10 * MINUTE_MS, T0 + 12 * MINUTE_MS)
    assert (coarse.step_ms, len(coarse.at)) == (MINUTE_MS, 3)
