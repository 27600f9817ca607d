"""The requests that the `http` sink sends, without Spark."""

from __future__ import annotations

import hashlib
import hmac
import time

import pytest

from penstock.connectors.messages.sink import Message
from penstock.errors import Invalid
from tests.http_deliveries import FIRST, SECOND, deliver, events, ids, sink
from tests.http_server import Asked, Said, Server


def test_one_event_a_request(server: Server) -> None:
    assert deliver(sink(server), events(server, 3)).events == 3
    assert [(each.method, each.headers["Content-Type"]) for each in server.asked] == [
        ("POST", "application/json")
    ] * 3
    assert ids(server.asked) == [0, 1, 2]


@pytest.mark.parametrize("body", ["array", "lines"])
def test_several_events_a_request(server: Server, body: str) -> None:
    assert deliver(sink(server, body=body, max_events=4), events(server, 10)).events == 10
    assert ids(server.asked) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_requests_end_at_their_bytes_and_at_another_address(server: Server) -> None:
    deliver(sink(server, body="array", max_bytes=30), events(server, 6))
    assert ids(server.asked) == [[0, 1, 2], [3, 4, 5]]
    server.asked.clear()
    mixed = [
        event for pair in zip(events(server, 3, "/a"), events(server, 3, "/b"), strict=True) for event in pair
    ]
    deliver(sink(server, body="array"), mixed, SECOND)
    assert [(each.path, len(each.json())) for each in server.asked] == [("/a", 3), ("/b", 3)]


def test_headers_of_events_and_of_the_sink(server: Server) -> None:
    made = sink(server, headers={"X-Fixed": "ü {{}}", "content-type": "text/plain"})
    deliver(made, [Message(f"{server.url}/\nX-Country: é", b"plain")])
    (asked,) = server.asked
    assert asked.headers["X-Fixed"].encode("latin-1").decode() == "ü {}"
    assert asked.headers["X-Country"].encode("latin-1").decode() == "é"
    assert {name.lower(): value for name, value in asked.headers.items()}["content-type"] == "text/plain"
    assert asked.body == b"plain"


def test_a_delete_has_no_body(server: Server) -> None:
    deliver(sink(server, method="DELETE"), events(server, 1, "/users/1"))
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("DELETE", "/users/1", b"")


def test_a_repeated_batch_has_the_same_keys_and_another_one_has_others(server: Server) -> None:
    same = [Message(f"{server.url}/", b"{}")] * 3
    for delivery in (FIRST, FIRST, SECOND):
        deliver(sink(server), same, delivery)
    keys = [each.headers["Idempotency-Key"] for each in server.asked]
    assert keys[:3] == keys[3:6]
    assert len(set(keys)) == 6, "equal events are different ones"
    server.asked.clear()
    deliver(sink(server, idempotency_key="X-Id"), same)
    assert [each.headers["X-Id"] for each in server.asked] == keys[:3]
    server.asked.clear()
    deliver(sink(server, idempotency_key=None), same)
    assert not any("Idempotency-Key" in each.headers for each in server.asked)


def test_keys_do_not_depend_on_the_order_of_a_batch(server: Server) -> None:
    given = events(server, 5)
    deliver(sink(server), given)
    deliver(sink(server), given[::-1])
    keys = {str(ids([each])[0]): each.headers["Idempotency-Key"] for each in server.asked[:5]}
    assert {str(ids([each])[0]): each.headers["Idempotency-Key"] for each in server.asked[5:]} == keys


def test_equal_events_at_once_are_all_sent(server: Server) -> None:
    address = f"{server.url}/"
    same = [Message(address, b"", key=f"k{i}".encode()) for i in range(20)] + [Message(address, None)] * 20
    assert deliver(sink(server, concurrency=4), same).events == 40
    assert len({each.headers["Idempotency-Key"] for each in server.asked}) == 40


@pytest.mark.parametrize("form", ["stripe", "github"])
def test_signatures(server: Server, form: str) -> None:
    deliver(
        sink(server, signature={"secret": "s3cret", "format": form, "header": "X-Sig"}), events(server, 1)
    )
    (asked,) = server.asked
    found = asked.headers["X-Sig"]
    signed, digest = asked.body, found.removeprefix("sha256=")
    if form == "stripe":
        moment, digest = found.removeprefix("t=").split(",v1=")
        assert abs(int(moment) - time.time()) < 60
        signed = f"{moment}.".encode() + asked.body
    assert hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest() == digest


def test_logins(server: Server) -> None:
    deliver(sink(server, auth={"basic": {"username": "u", "password": "p"}}), events(server, 1))
    deliver(sink(server, auth={"bearer": "token"}), events(server, 1))
    assert [each.headers["Authorization"] for each in server.asked] == ["Basic dTpw", "Bearer token"]


def test_oauth2_fetches_a_token_once_and_again_when_it_is_refused(server: Server) -> None:
    tokens: list[str] = []

    def answer(asked: Asked) -> Said:
        if asked.path == "/token":
            assert asked.body == b"grant_type=client_credentials&scope=write"
            assert asked.headers["Authorization"] == "Basic aWQ6c2VjcmV0"
            tokens.append(f"t{len(tokens)}")
            return Said({"access_token": tokens[-1], "expires_in": 3600})
        expired = len(server.asked) > 5 and asked.headers["Authorization"] == "Bearer t0"
        return Said(status=401 if expired else 200)

    server.answer = answer
    login = {
        "token_url": f"{server.url}/token",
        "client_id": "id",
        "client_secret": "secret",
        "scope": "write",
    }
    assert deliver(sink(server, auth={"oauth2": login}), events(server, 10)).events == 10
    assert tokens == ["t0", "t1"]
    server.answer = lambda _: Said({"error": "invalid_client"}, 401)
    with pytest.raises(Invalid) as caught:
        deliver(sink(server, auth={"oauth2": login}), events(server, 1))
    assert (caught.value.problems[0].code, caught.value.problems[0].path) == ("http_login", "auth.oauth2")
    assert "secret" not in str(caught.value).replace("client_secret", "")
