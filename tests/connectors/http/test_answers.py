"""How the `http` sink takes the answers of a service, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from penstock.connectors.http.statuses import PAUSE_S
from penstock.connectors.messages.sink import Message
from penstock.errors import Backpressure, Invalid, PenstockError, Unavailable
from tests.http_deliveries import SECOND, deliver, events, ids, sink
from tests.http_server import Asked, Said, Server


@pytest.mark.parametrize(
    ("said", "error", "code"),
    [
        (Said(status=500), Unavailable, "http_failed"),
        (Said(status=503), Unavailable, "http_failed"),
        (Said(status=408), Unavailable, "http_failed"),
        (Said({"reason": "no"}, 200, cut=3), Unavailable, "http_unreachable"),
        (Said(status=401), Invalid, "http_unauthorized"),
        (Said(status=403), Invalid, "http_forbidden"),
        (Said(status=404), Invalid, "http_not_found"),
        (Said(status=405), Invalid, "http_method"),
        (Said(status=307, headers={"Location": "/other"}), Invalid, "http_redirect"),
    ],
)
def test_answers_that_are_not_about_the_event(
    server: Server, said: Said, error: type[PenstockError], code: str
) -> None:
    server.answer = lambda _: said
    with pytest.raises(error) as caught:
        deliver(sink(server, body="array"), events(server, 10))
    (problem,) = caught.value.problems
    assert (problem.code, bool(problem.path), bool(problem.hint)) == (code, True, True)
    assert len(server.asked) == 1, "not a request for each event"


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        (Said(status=429, headers={"Retry-After": "7"}), 7),
        (Said(status=503, headers={"Retry-After": "3"}), 3),
        (Said(status=429, headers={"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}), 3600),
        (Said(status=429, headers={"Retry-After": "nonsense"}), PAUSE_S),
        (Said(status=429), PAUSE_S),
    ],
)
def test_the_service_may_ask_to_wait(server: Server, said: Said, wait: float) -> None:
    server.answer = lambda _: said
    with pytest.raises(Backpressure) as caught:
        deliver(sink(server), events(server, 1))
    assert caught.value.retry_after == wait


def test_what_was_acknowledged_is_not_sent_again_in_the_same_run(server: Server) -> None:
    server.answer = lambda asked: Said(status=429 if len(server.asked) in (4, 9) else 200)
    made, tries = sink(server), 0
    while True:
        tries += 1
        try:
            assert deliver(made, events(server, 10)).events == 10  # each time with another writer
            break
        except Backpressure:
            assert tries < 5
    assert ids(server.asked) == [0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9]
    server.asked.clear()
    deliver(made, events(server, 1), SECOND)
    assert len(server.asked) == 1, "another batch is not the same"


def refusing(*bad: int, status: int = 422) -> Callable[[Asked], Said]:
    """Refuse requests that have one of these events."""

    def answer(asked: Asked) -> Said:
        (found,) = ids([asked])
        hit = set(found if isinstance(found, list) else [found]) & set(bad)
        return Said({"error": f"bad ids {sorted(hit)}"}, status) if hit else Said()

    return answer


def test_a_refused_event_is_a_letter(server: Server) -> None:
    server.answer = refusing(1)
    delivered = deliver(sink(server), events(server, 3))
    (letter,) = delivered.rejected
    assert (delivered.events, letter.code, letter.row) == (2, "http_422", '{"id": 1}')
    assert letter.message == f'{server.url} responded with 422: {{"error": "bad ids [1]"}}'


@pytest.mark.parametrize("body", ["array", "lines"])
def test_a_refused_request_is_split_down_to_the_bad_events(server: Server, body: str) -> None:
    server.answer = refusing(3, 64, 65, status=400)
    delivered = deliver(sink(server, body=body, max_events=100), events(server, 100))
    assert delivered.events == 97
    assert sorted(json.loads(letter.row)["id"] for letter in delivered.rejected) == [3, 64, 65]
    accepted = [ids([each])[0] for each in server.asked if server.answer(each).status == 200]
    assert [i for part in accepted for i in part] == [i for i in range(100) if i not in (3, 64, 65)]
    assert len(server.asked) < 40


def test_addresses_of_events_may_be_unknown_but_not_all_of_them(server: Server) -> None:
    made = sink(server, url=server.url + "/users/{id}")
    server.answer = lambda asked: Said(status=404 if asked.path == "/users/2" else 200)
    users = [Message(f"{server.url}/users/{i}", b"{}") for i in range(200)]
    delivered = deliver(made, users)
    assert (delivered.events, [letter.code for letter in delivered.rejected]) == (199, ["http_404"])
    server.asked.clear()
    server.answer = lambda _: Said(status=404)
    with pytest.raises(Invalid, match="100 consecutive requests") as caught:
        deliver(made, users, SECOND)
    assert (caught.value.problems[0].code, caught.value.problems[0].path) == ("http_not_found", "url")
    assert len(server.asked) == 100


def test_an_unknown_address_of_many_events_is_not_split(server: Server) -> None:
    server.answer = lambda asked: Said(status=404)
    made = sink(server, url=server.url + "/{tenant}", body="array")
    delivered = deliver(made, events(server, 50, "/t"))
    assert (delivered.events, len(list(delivered.rejected)), len(server.asked)) == (0, 50, 1)


def test_statuses_that_a_user_wants_repeated(server: Server) -> None:
    server.answer = lambda _: Said(status=409)
    assert len(list(deliver(sink(server), events(server, 1)).rejected)) == 1
    with pytest.raises(Unavailable):
        deliver(sink(server, retry_statuses=[409]), events(server, 1))


def test_values_that_cannot_share_a_request(server: Server) -> None:
    given = [Message(f"{server.url}/", value) for value in (b'{"id": 1}', b"no json", None, b'{"id":\n2}')]
    delivered = deliver(sink(server, body="array"), given)
    assert [letter.code for letter in delivered.rejected] == ["not_json"]
    assert server.asked[0].json() == [{"id": 1}, None, {"id": 2}]
    delivered = deliver(sink(server, body="lines"), given)
    assert [letter.code for letter in delivered.rejected] == ["multiple_lines"]
    assert server.asked[1].body == b'{"id": 1}\nno json\nnull\n'
