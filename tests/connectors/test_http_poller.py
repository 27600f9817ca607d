"""The polls of the `http_poll` source, without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import ValidationError

from penstock.connectors.http.paths import elements, steps_of, text_at
from penstock.connectors.http.poll import HttpPollSource
from penstock.connectors.http.poller import Poller
from penstock.connectors.received import Ended
from penstock.errors import Invalid, PenstockError, Unavailable
from tests.flows import NO_STREAMS
from tests.http_server import Asked, Said, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def source(server: Server, **fields: Any) -> HttpPollSource:
    given = {"type": "http_poll", "url": f"{server.url}/items", "schema": "id BIGINT", "poll_ms": 1}
    return HttpPollSource.model_validate({**given, "timeout_ms": 3000, **fields})


def params(asked: Asked) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(asked.path).query))


class Reader:
    """A receiver, and the events and the position that it has given."""

    def __init__(self, made: HttpPollSource, position: str | None = None) -> None:
        self.receiver = made.receiver(NO_STREAMS)
        self.receiver.open(position)
        self.position = position
        self.keys: list[bytes | None] = []
        self.headers: list[Any] = []

    def events(self, polls: int = 1, requests: int = 6) -> list[Any]:
        """The values of up to this many further requests."""
        found = []
        for _ in range(requests * polls):
            try:
                received = self.receiver.receive(0.01)
            except Ended:
                break
            if received is not None:
                self.position = received.position
                rows = received.events.to_pylist()
                self.keys += [row.get("_key") for row in rows]
                found += [json.loads(row["value"]) for row in rows]
            time.sleep(0.002)
        self.receiver.close()
        return found


def read(made: HttpPollSource, position: str | None = None) -> tuple[list[Any], str | None]:
    reader = Reader(made, position)
    return reader.events(), reader.position


def listed(*ids: int) -> list[dict[str, int]]:
    return [{"id": i} for i in ids]


@pytest.mark.parametrize(
    ("body", "items"),
    [
        (listed(1, 2), None),
        ({"data": {"a b": listed(1, 2)}}, 'data["a b"]'),
        ({"pages": [[], listed(1, 2)]}, "$.pages[1]"),
    ],
)
def test_items_of_an_answer(server: Server, body: Any, items: str | None) -> None:
    server.answer = lambda _: Said(body)
    assert read(source(server, items=items, once=True))[0] == listed(1, 2)


def test_one_object_is_one_event_and_null_is_none(server: Server) -> None:
    server.answer = lambda _: Said({"id": 7, "data": None})
    assert read(source(server, once=True))[0] == [{"id": 7, "data": None}]
    assert read(source(server, once=True, items="data"))[0] == []
    server.answer = lambda _: Said(b"", 204)
    assert read(source(server, once=True))[0] == []


def test_numbers_keep_every_digit(server: Server) -> None:
    text = b'{"data": [ {"id": 12345678901234567890.10, "n": 1e400} , {"id":3}]}'
    server.answer = lambda _: Said(text)
    receiver = source(server, items="data").receiver(NO_STREAMS)
    receiver.open(None)
    received = receiver.receive(1)
    assert received is not None
    assert received.events.column("value").to_pylist() == [
        b'{"id": 12345678901234567890.10, "n": 1e400}', b'{"id":3}',
    ]  # fmt: skip
    receiver.close()


def test_keys(server: Server) -> None:
    server.answer = lambda _: Said([{"id": 1, "a": {"k": "x"}}, {"id": 2, "a": {"k": 1.50}}, {"id": 3}])
    reader = Reader(source(server, key="a.k", once=True))
    reader.events()
    assert reader.keys == [b"x", b"1.5", None]


def test_requests_carry_what_is_declared(server: Server) -> None:
    server.answer = lambda _: Said([])
    made = source(
        server, url=f"{server.url}/items?a=1", params={"b": "x y&"}, headers={"X-A": "1"},
        auth={"basic": {"username": "u", "password": "p"}}, once=True,
    )  # fmt: skip
    read(made)
    (asked,) = server.asked
    assert (asked.method, params(asked)) == ("GET", {"a": "1", "b": "x y&"})
    assert (asked.headers["X-A"], asked.headers["Authorization"]) == ("1", "Basic dTpw")


def test_it_polls_again(server: Server) -> None:
    server.answer = lambda _: Said(listed(len(server.asked)))
    assert Reader(source(server)).events(requests=3) == listed(1, 2, 3)
    server.asked.clear()
    assert Reader(source(server, poll_ms=60_000)).events() == listed(1)
    assert len(server.asked) == 1


@pytest.mark.parametrize("inclusive", [True, False])
def test_a_cursor_brings_each_item_once(server: Server, inclusive: bool) -> None:
    stored = [{"id": i, "at": f"2026-01-0{1 + i // 2}"} for i in range(5)]

    def answer(asked: Asked) -> Said:
        since = params(asked).get("since", "")
        found = [item for item in stored if item["at"] >= since]
        return Said(found if inclusive else [item for item in found if item["at"] > since])

    server.answer = answer
    made = source(server, cursor={"field": "at", "param": "since"})
    first, position = read(made)
    assert first == stored
    assert params(server.asked[-1]) == {"since": "2026-01-03"}
    stored.append({"id": 6, "at": "2026-01-04"})
    assert read(made, position)[0] == stored[-1:], "after a restart"


def test_items_with_the_same_cursor_that_come_later_are_new(server: Server) -> None:
    stored = [{"id": 1, "at": 5}]
    server.answer = lambda _: Said(stored)
    made = source(server, cursor={"field": "at", "param": "since", "start": 3})
    first, position = read(made)
    assert params(server.asked[0]) == {"since": "3"}
    stored.append({"id": 2, "at": 5})
    second, position = read(made, position)
    assert (first, second) == (stored[:1], stored[1:])
    assert read(made, position)[0] == []


def test_a_position_of_another_address_means_nothing(server: Server) -> None:
    server.answer = lambda _: Said([{"id": 1}])
    cursor = {"field": "id", "param": "after"}
    _, position = read(source(server, cursor=cursor))
    assert read(source(server, cursor=cursor), position)[0] == []
    assert read(source(server, cursor=cursor, params={"token": "new"}), position)[0] == []
    assert read(source(server, cursor=cursor, url=f"{server.url}/other"), position)[0] == [{"id": 1}]


def pages(server: Server, count: int, **style: Any) -> None:
    """Answer with pages of two items, `count` in all."""

    def answer(asked: Asked) -> Said:
        given = params(asked)
        start = int(given.get("c") or given.get("offset") or 0)
        if "page" in given:
            start = (int(given["page"]) - 1) * 2
        more = start + 2 < count
        body: dict[str, Any] = {"items": listed(*range(start, min(start + 2, count)))}
        headers = {}
        if more and "cursor" in style:
            body["next"] = str(start + 2)
        if more and "address" in style:
            body["next"] = f"/items?c={start + 2}"
        if more and "link" in style:
            previous = '<http://127.0.0.1:1/>; rel="prev", '
            headers["Link"] = f'{previous}<{server.url}/items?c={start + 2}>; title="x"; rel="next"'
        return Said(body, headers=headers)

    server.answer = answer


PAGING = {
    "link": ({"type": "link"}, {"link": True}),
    "cursor": ({"type": "cursor", "path": "next", "param": "c"}, {"cursor": True}),
    "address": ({"type": "cursor", "path": "next"}, {"address": True}),
    "page": ({"type": "page"}, {}),
    "page with size": ({"type": "page", "size": 2}, {}),
    "offset": ({"type": "offset"}, {}),
    "offset with size": ({"type": "offset", "size": 2, "size_param": "n"}, {}),
}


@pytest.mark.parametrize("kind", PAGING)
def test_pages(server: Server, kind: str) -> None:
    paging, style = PAGING[kind]
    pages(server, 5, **style)
    assert read(source(server, items="items", paging=paging, once=True))[0] == listed(*range(5))
    assert len(server.asked) == (4 if kind in ("page", "offset") else 3)
    if kind == "offset with size":
        assert params(server.asked[1]) == {"n": "2", "offset": "2"}


@pytest.mark.parametrize("kind", ["link", "cursor", "page with size", "offset", "offset with size"])
def test_paging_that_resumes_brings_appended_items_once(server: Server, kind: str) -> None:
    paging, style = PAGING[kind]
    made = source(server, items="items", paging={**paging, "resume": True})
    found: list[Any] = []
    position = None
    for count in (3, 3, 4, 9, 10):
        pages(server, count, **style)
        events, position = read(made, position)
        found += events
    assert found == listed(*range(10))
    assert len([each for each in server.asked if each.path == "/items"]) < 10, "not from the beginning"


def test_an_interrupted_poll_goes_on_with_its_page(server: Server) -> None:
    pages(server, 6, cursor=True)
    right = server.answer
    server.answer = lambda asked: Said(status=500) if params(asked).get("c") == "2" else right(asked)
    made = source(server, items="items", paging=PAGING["cursor"][0], once=True)
    reader = Reader(made)
    with pytest.raises(Unavailable):
        reader.events()
    pages(server, 6, cursor=True)
    server.asked.clear()
    assert read(made, reader.position)[0] == listed(2, 3, 4, 5)
    assert params(server.asked[0]) == {"c": "2"}
    # A page that is not known any more: the poll begins again.
    server.answer = lambda asked: (
        Said(status=400) if params(asked).get("c") == "2" else Said({"items": listed(9)})
    )
    assert read(made, reader.position)[0] == listed(9)


def test_pages_of_a_poll_have_the_same_cursor(server: Server) -> None:
    def answer(asked: Asked) -> Said:
        given = params(asked)
        after, page = int(given.get("after", -1)), int(given["page"])
        left = [i for i in range(5) if i > after]
        return Said(listed(*left[(page - 1) * 2 : page * 2]))

    server.answer = answer
    made = source(server, cursor={"field": "id", "param": "after"}, paging={"type": "page", "size": 2})
    reader = Reader(made)
    assert reader.events() == listed(*range(5))
    assert [params(each) for each in server.asked[:4]] == [
        {"page": "1", "limit": "2"}, {"page": "2", "limit": "2"}, {"page": "3", "limit": "2"},
        {"page": "1", "limit": "2", "after": "4"},
    ]  # fmt: skip


def test_a_page_at_another_host_is_not_read(server: Server) -> None:
    server.answer = lambda _: Said([], headers={"Link": '<http://127.0.0.1:1/x>; rel="next"'})
    with pytest.raises(Invalid) as caught:
        read(source(server, paging={"type": "link"}, auth={"bearer": "secret"}))
    assert caught.value.problems[0].code == "http_foreign_page"


def test_post_puts_parameters_into_the_body(server: Server) -> None:
    server.answer = lambda asked: Said(listed(asked.json().get("after", 0) + 1))
    made = source(
        server, method="POST", body={"query": {"all": True}}, params={"v": "2"},
        cursor={"field": "id", "param": "after"},
    )  # fmt: skip
    assert Reader(made).events(requests=3) == listed(1, 2, 3)
    assert [each.json() for each in server.asked[:2]] == [
        {"query": {"all": True}}, {"query": {"all": True}, "after": 1},
    ]  # fmt: skip
    assert {(each.method, each.path) for each in server.asked} == {("POST", "/items?v=2")}


@pytest.mark.parametrize("validator", ["ETag", "Last-Modified"])
def test_an_answer_that_has_not_changed_brings_nothing(server: Server, validator: str) -> None:
    version = ["v1"]

    def answer(asked: Asked) -> Said:
        asks = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[validator]
        same = asked.headers.get(asks) == version[0]
        return Said(listed(1), 304 if same else 200, {validator: version[0]})

    server.answer = answer
    events, position = read(source(server))
    assert (events, len(server.asked) > 2) == (listed(1), True)
    assert read(source(server), position)[0] == [], "after a restart"
    version[0] = "v2"
    assert read(source(server), position)[0] == listed(1)


@pytest.mark.parametrize("status", [429, 503])
def test_it_waits_as_long_as_the_service_asks(server: Server, status: int) -> None:
    def answer(asked: Asked) -> Said:
        return Said([], status, {"Retry-After": "1"}) if len(server.asked) == 1 else Said(listed(1))

    server.answer = answer
    receiver = source(server, once=True).receiver(NO_STREAMS)
    began = time.monotonic()
    receiver.open(None)
    while (received := receiver.receive(0.1)) is None:
        assert time.monotonic() - began < 5
    assert time.monotonic() - began >= 0.9
    assert received.events.num_rows == 1
    with pytest.raises(Ended):
        receiver.receive(0.1)
    receiver.close()


@pytest.mark.parametrize(
    ("said", "error", "code"),
    [
        (Said(status=500), Unavailable, "http_failed"),
        (Said(b"<html>", 200), Unavailable, "not_json"),
        (Said(b'{"data": ["\xff"]}', 200), Unavailable, "not_json"),
        (Said({"other": []}), Unavailable, "no_items"),
        (Said([1, 2, 3], cut=2), Unavailable, "http_unreachable"),
        (Said({"e": "bad"}, 400), Invalid, "http_refused"),
        (Said(status=401), Invalid, "http_unauthorized"),
        (Said(status=404), Invalid, "http_not_found"),
        (Said(status=301), Invalid, "http_redirect"),
        (Said({"data": ["x" * 2000]}), Invalid, "too_large"),
    ],
)
def test_errors(server: Server, said: Said, error: type[PenstockError], code: str) -> None:
    server.answer = lambda _: said
    with pytest.raises(error) as caught:
        read(source(server, items="data", max_body_bytes=1000))
    (problem,) = caught.value.problems
    assert (problem.code, bool(problem.path), bool(problem.hint)) == (code, True, True)


def test_a_stop_ends_the_wait(server: Server) -> None:
    server.answer = lambda _: Said([])
    receiver = source(server, poll_ms=60_000).receiver(NO_STREAMS)
    assert isinstance(receiver, Poller)
    receiver.open(None)
    receiver.stop()
    began = time.monotonic()
    assert receiver.receive(20) is None
    assert time.monotonic() - began < 1
    receiver.close()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a", '{"b": [1, 2.50, {"c d": "x"}]}'),
        ("$.a.b[1]", "2.50"),
        ('a.b[2]["c d"]', '"x"'),
        ("a.b[3]", None),
        ("a.x", None),
        ("e", "null"),
        ("twice", "2"),
        ("a[0]", None),
    ],
)
def test_paths(path: str, found: str | None) -> None:
    text = ' {"a": {"b": [1, 2.50, {"c d": "x"}]}, "twice": 1, "e" : null ,"twice":2}'
    assert text_at(text, steps_of(path)) == found


def test_elements_of_arrays() -> None:
    assert elements('[1 , [2, 3],{"a": "]"} ]') == ["1", "[2, 3]", '{"a": "]"}']
    assert elements("[]") == []
    assert elements("null") == []
    assert elements('{"a": 1}') == ['{"a": 1}']


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"items": "a..b"}, "not a valid path"),
        ({"items": "a["}, "not a valid path"),
        ({"body": {"a": 1}}, "use POST"),
        ({"paging": {"type": "cursor"}}, "needs 'path'"),
        ({"paging": {"type": "link", "param": "x"}}, "can't be used"),
        ({"paging": {"type": "offset", "first": 2}}, "can only be used"),
        ({"paging": {"type": "page", "resume": True}}, "needs the 'size'"),
        ({"paging": {"type": "link", "resume": True}, "cursor": {"field": "a", "param": "b"}}, "either"),
        ({"schema": None}, "needs a 'schema'"),
    ],
)
def test_settings_that_cannot_work(fields: dict[str, Any], message: str) -> None:
    given = {"type": "http_poll", "url": "https://x/", "schema": "id BIGINT", **fields}
    with pytest.raises(ValidationError, match=message):
        HttpPollSource.model_validate(given)
