from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.processors.scripts import Ran, Script, ids, no_processes_left, run

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="module")
def tidy() -> Iterator[None]:
    with no_processes_left():
        yield


def known(body: str, **schema: Any) -> Ran:
    """Two events of a stream, of which everything is known."""
    script = Script("id BIGINT", inline=f"function processBatch(events) {{ {body} }}", **schema)
    return script(
        *ids(1, 2),
        offset=[70, 2**60],
        time=[AT, AT],
        key=["a", None],
        headers=[[("h", "1")], None],
    )


def test_a_script_sees_what_is_known_of_an_event() -> None:
    assert known("events.forEach(e => console.log(e.$meta.offset, e.$meta))").logs == [
        '70 {"key":"a","headers":{"h":"1"},"offset":70,"time":"2026-01-02T03:04:05Z","sink":null}',
        '1152921504606846976n {"key":null,"headers":{},"offset":"1152921504606846976n",'
        '"time":"2026-01-02T03:04:05Z","sink":null}',
    ]
    assert known(
        "console.log(Object.keys(events[0]), JSON.stringify(events[0]), '$meta' in events[0])"
    ).logs == ['["id"] {"id":1} true']


@pytest.mark.parametrize(
    "body",
    [
        "",
        "return events",
        "return events.map(e => ({...e}))",
        "return events.map(e => Object.assign({}, e)).filter(e => e.$meta.offset)",
        "events.forEach(e => { e.$meta = {} })",
    ],
)
def test_events_and_their_copies_keep_it(body: str) -> None:
    events = known(body).events
    assert [event["offset"] for event in events] == [70, 2**60]
    assert [event["key"] for event in events] == ["a", None]
    assert [dict(event["headers"] or {}) for event in events] == [{"h": "1"}, {}]
    assert [event["time"] for event in events] == [AT, AT]
    assert [event["sinks"] for event in events] == [None, None]


def test_a_new_object_has_none_and_may_be_given_one() -> None:
    ran = known("return [{id: 1}, {id: 2, $meta: {key: 5n, headers: {n: 1}, sink: 'audit'}}]")
    assert not any(ran.events[0].values())
    assert ran.events[1] == {
        "offset": None,
        "time": None,
        "key": "5",
        "headers": {"n": "1"},
        "sinks": ["audit"],
        "batch": None,
        "sample": None,
        "place": None,
        "latest": None,
    }


def test_a_script_sets_key_headers_and_sink() -> None:
    ran = known(
        """
        events[0].$meta.key = events[0].id
        events[0].$meta.headers.more = true
        events[0].$meta.sink = ['lake', 'audit']
        events[1].$meta.headers = null
        events[1].$meta.sink = 'lake'
        """
    )
    assert [event["key"] for event in ran.events] == ["1", None]
    assert [event["headers"] for event in ran.events] == [{"h": "1", "more": "true"}, None]
    assert [event["sinks"] for event in ran.events] == [["lake", "audit"], ["lake"]]
    assert [event["offset"] for event in ran.events] == [70, 2**60]


def test_copies_are_changed_by_themselves() -> None:
    ran = known(
        """
        const [first] = events
        first.$meta.headers.shared = 'x'
        const one = {...first}, two = {...first, $meta: {key: 'two'}}
        one.$meta.sink = 'lake'
        one.$meta.headers.own = 'y'
        return [first, one, two]
        """
    )
    assert [event["sinks"] for event in ran.events] == [None, ["lake"], None]
    assert [event["key"] for event in ran.events] == ["a", "a", "two"]
    assert [event["headers"] for event in ran.events] == [
        {"h": "1", "shared": "x"},
        {"h": "1", "shared": "x", "own": "y"},
        {"h": "1", "shared": "x"},
    ]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("sink = 'lak'", "unknown_sink", "there is no sink lak; one of: lake, audit"),
        ("sink = []", "unknown_sink", "$meta.sink is empty: leave the event out to drop it"),
        ("sink = ['lake', 7]", "unknown_sink", "there is no sink 7; one of: lake, audit"),
        ("key = {}", "bad_meta", "$meta.key is {}, not text"),
        ("headers = 'x'", "bad_meta", "$meta.headers is x, not an object of names and texts"),
        ("headers.x = []", "bad_meta", "$meta.headers.x is [], not text"),
    ],
)
def test_what_cannot_be_set_is_an_error_of_its_event(change: str, code: str, message: str) -> None:
    ran = known(f"events[1].$meta.{change}")
    assert ran.rows == ids(1)
    assert ran.faults == [(2**60, code)]
    assert ran.message == message


def test_nothing_is_known_where_the_source_knows_nothing() -> None:
    ran = run("for (const e of events) e.$meta.key = 'k'", *ids(1))
    assert ran.events[0]["key"] == "k"
    script = Script("id BIGINT", inline="function processBatch(events) { events[0].$meta.sink = 'lake' }")
    assert script(*ids(1), offset=[None]).events[0]["sinks"] == ["lake"]
