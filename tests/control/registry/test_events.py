import time

import pytest

from penstock.control.registry import Registry, events
from tests.control.registry.kit import stream, together


def test_changes_are_told_in_order(registry: Registry) -> None:
    uid = registry.create(stream("A b")).uid
    registry.update("Stream", "a_b", stream("A B"), origin="patch")
    registry.delete("Stream", "a_b")
    told = registry.events_after(0)
    assert [(e.kind, e.name, e.type) for e in told] == [
        ("Stream", "A b", "created"),
        ("Stream", "A B", "updated"),
        ("Stream", "A B", "deleted"),
    ]
    assert told[0].data == {"id": "a_b", "uid": uid, "revision": 1, "origin": "create"}
    assert told[1].data == {"id": "a_b", "uid": uid, "revision": 2, "origin": "patch"}
    assert registry.last_event_id() == told[-1].id
    assert registry.events_after(told[0].id, limit=1) == [told[1]]
    assert registry.events_after(told[-1].id) == []


def test_own_events_commit_with_their_transaction(registry: Registry) -> None:
    with registry.begin() as conn:
        registry.emit(conn, "Pipeline", "p", "phase", {"phase": "running"})
        assert registry.events_after(0) == []
    assert [(e.type, e.data) for e in registry.events_after(0)] == [("phase", {"phase": "running"})]


def test_only_the_newest_are_kept(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEPT_EVENTS", 10)
    for n in range(7):
        with registry.begin() as conn:
            for m in range(4):
                registry.emit(conn, "Stream", f"{n}.{m}", "tested")
    kept = registry.events_after(0)
    assert len(kept) == 10
    assert kept[-1].name == "6.3"


def test_a_reader_misses_no_event(registry: Registry) -> None:
    """An event never appears behind one that a reader has seen, however transactions overlap."""
    done = [False]

    def write(writer: int) -> None:
        for n in range(20):
            with registry.begin() as conn:
                registry.emit(conn, "Stream", f"{writer}.{n}", "tested")
                time.sleep(0.001 * (writer % 3))

    def write_all() -> None:
        together(*(lambda w=w: write(w) for w in range(4)))  # type: ignore[misc]
        done[0] = True

    def read() -> list[str]:
        seen: list[str] = []
        last = 0
        while True:
            finished = done[0]
            for event in registry.events_after(last, limit=7):
                seen.append(event.name)
                last = event.id
            if finished and last == registry.last_event_id():
                return seen

    _, seen = together(write_all, read)
    assert len(seen) == len(set(seen)) == 80
