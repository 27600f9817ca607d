from __future__ import annotations

import datetime
import email.utils
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Retryable
from penstock.processors.http import HttpProcessor
from tests.http_server import Asked, Said, http_server
from tests.processors.arrow_kit import batch_of, opened, refusals, run, stage

USERS = batch_of("id INT, name STRING", [{"id": 1, "name": "a/b c"}, {"id": 2, "name": "ü"}])
QUICK = {"attempts": 3, "backoff_ms": 1}


def test_the_answer_is_a_column() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Said:
        asked.append(request)
        return Said({"tier": len(asked), "more": 1})

    with http_server(answer) as url:
        step = HttpProcessor(
            url=url + "/users/{ID}?n={name}&x={{}}",
            headers={"Authorization": "Bearer t"},
            into="user",
            schema="tier INT, gone STRING",
            concurrency=1,
        )
        result = run(step, USERS)
    assert result.rows == [
        {"id": 1, "name": "a/b c", "user": {"tier": 1, "gone": None}},
        {"id": 2, "name": "ü", "user": {"tier": 2, "gone": None}},
    ]
    assert [(each.method, each.path, each.body) for each in asked] == [
        ("GET", "/users/1?n=a%2Fb%20c&x={}", b""),
        ("GET", "/users/2?n=%C3%BC&x={}", b""),
    ]
    assert asked[0].headers["Authorization"] == "Bearer t"


def test_logins() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Said:
        asked.append(request)
        return Said({"access_token": "fetched"} if request.path == "/token" else {})

    with http_server(answer) as url:
        login = {"token_url": f"{url}/token", "client_id": "id", "client_secret": "secret"}
        for auth in ({"bearer": "given"}, {"oauth2": login}):
            assert not run(HttpProcessor(url=url, auth=auth, concurrency=1), USERS).bad
    assert [each.headers.get("Authorization") for each in asked] == [
        "Bearer given", "Bearer given", "Basic aWQ6c2VjcmV0", "Bearer fetched", "Bearer fetched",
    ]  # fmt: skip
    with http_server(lambda request: Said(status=403)) as url:
        refused = {"oauth2": {**login, "token_url": url}}
        result = run(HttpProcessor(url=url, auth=refused, retry=QUICK), USERS)
    assert result.bad == {0: "http_login", 1: "http_login"}


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (None, {"id": 1, "name": "a/b c"}),
        (
            {"user": "{id}", "list": ["n {name}", True], "b": "{{}}"},
            {"user": 1, "list": ["n a/b c", True], "b": "{}"},
        ),
        ('["{name}", {id}]', ["a/b c", 1]),
    ],
)
def test_bodies(body: Any, sent: Any) -> None:
    with http_server(lambda request: Said(request.body)) as url:
        step = HttpProcessor(url=url, method="POST", body=body, concurrency=1)
        assert json.loads(run(step, USERS).rows[0]["response"]) == sent


def test_a_call_is_tried_again_where_that_can_help() -> None:
    turns: Counter[str] = Counter()

    def answer(request: Asked) -> Said:
        turns[request.path] += 1
        return Said(
            {"n": 1},
            200 if turns[request.path] == 3 and request.path == "/1" else [503, 404][request.path == "/3"],
        )

    events = batch_of("id INT", [{"id": 1}, {"id": 2}, {"id": 3}])
    with http_server(answer) as url:
        result = run(HttpProcessor(url=url + "/{id}", schema="n INT", retry=QUICK), events)
    assert result.rows == [{"id": 1, "response": {"n": 1}}]
    assert result.bad == {1: "http_status", 2: "http_status"}
    assert result.message(1).endswith("/2 answered 503")
    assert turns == {"/1": 3, "/2": 3, "/3": 1}


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_the_service_says_when_to_come_back(form: str) -> None:
    times: list[float] = []

    def answer(request: Asked) -> Said:
        times.append(time.monotonic())
        later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2)
        asked = {"seconds": "1", "date": email.utils.format_datetime(later, usegmt=True)}[form]
        return Said({}, 429, {"Retry-After": asked}) if len(times) == 1 else Said({})

    with http_server(answer) as url:
        assert run(HttpProcessor(url=url, retry=QUICK), USERS.slice(0, 1)).rows
    assert times[1] - times[0] >= 0.9


def test_what_does_not_fit_is_an_error_too() -> None:
    with http_server(lambda request: Said(b"{" if request.path == "/1" else b'{"n": "x"}')) as url:
        step: dict[str, Any] = {"url": url + "/{id}", "schema": "n INT", "retry": QUICK}
        result = run(HttpProcessor(**step), USERS)
        assert result.bad == {0: "answer_malformed_json", 1: "answer_wrong_type"}
        assert result.rows == []
        left = run(HttpProcessor(**step, on_error="null"), USERS)
        assert [row["response"] for row in left.rows] == [None, None]
        assert left.outcome.logs[0].startswith("2 without an answer: the response: not JSON")
        assert run(HttpProcessor(**step, on_error="drop"), USERS).rows == []
        with pytest.raises(Retryable, match="not JSON"):
            run(HttpProcessor(**step, on_error="fail"), USERS)


def test_silence_and_absence() -> None:
    done = threading.Event()

    def answer(request: Asked) -> Said:
        done.wait(10)
        return Said({})

    with http_server(answer) as url:
        slow = HttpProcessor(url=url, timeout_ms=50, retry={"attempts": 1})
        assert run(slow, USERS).bad == {0: "http_timeout", 1: "http_timeout"}
        done.set()
    assert run(HttpProcessor(url=url, retry=QUICK), USERS).bad == {0: "http_failed", 1: "http_failed"}


def test_answers_are_remembered_for_a_while() -> None:
    asked: list[str] = []

    def answer(request: Asked) -> Said:
        asked.append(request.path)
        return Said({}, 200 if request.path != "/7" else 500)

    events = batch_of("id INT", [{"id": i} for i in (1, 2, 1, 1, 7)])
    with http_server(answer) as url:
        step = HttpProcessor(url=url + "/{id}", cache={"ttl_ms": 300_000}, retry={"attempts": 1})
        for _ in range(2):  # in two tasks
            assert run(step, events).offsets == [0, 1, 2, 3]
    assert Counter(asked) == {"/1": 1, "/2": 1, "/7": 2}


def test_calls_are_made_at_once_and_keep_a_rate(tmp_path: Path) -> None:
    together = threading.Barrier(5)

    def answer(request: Asked) -> Said:
        if request.path == "/together":
            together.wait(20)  # for five calls that are there at once
        return Said(request.path)

    events = batch_of("id INT", [{"id": i} for i in range(5)])
    with http_server(answer) as url:
        assert not run(HttpProcessor(url=url + "/together", concurrency=5), events).bad
        began = time.monotonic()
        work = opened(HttpProcessor(url=url + "/{id}", rate=10), events, stage(state=tmp_path))
        assert [row["response"] for row in work(events).rows] == [f'"/{i}"' for i in range(5)]
        assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize(
    ("given", "answers", "bad"),
    [
        ([{"n": 1}, {"status": 500}], [{"n": 1}], {1: "http_status"}),
        ({"http://x/2": {"status": 200, "body": {"n": 2}}}, [{"n": 2}], {0: "no_answer"}),
        (None, [], {0: "no_answer", 1: "no_answer"}),
    ],
)
def test_a_test_run_calls_nobody(given: Any, answers: list[Any], bad: dict[int, str]) -> None:
    step = HttpProcessor(url="http://x/{id}", schema="n INT")
    result = run(step, USERS, stage(testing=True, given=given))
    assert [row["response"] for row in result.rows] == answers
    assert result.bad == bad


@pytest.mark.parametrize(
    ("options", "code", "path"),
    [
        ({"url": "http://x/{idd}"}, "unknown_column", "url"),
        ({"url": "http://x/{id"}, "invalid_template", "url"),
        ({"url": "http://x/{id:5}"}, "invalid_template", "url"),
        ({"url": "{name}"}, "invalid_value", "url"),
        ({"url": "http://x", "method": "POST", "body": {"a": ["{nope}"]}}, "unknown_column", "body"),
        ({"url": "http://x", "body": "x"}, "exclusive_fields", "body"),
        ({"url": "http://x", "into": "Name"}, "duplicate_column", "into"),
        ({"url": "http://x", "schema": "n TEXT"}, "invalid_schema", "schema"),
    ],
)
def test_refusals(options: dict[str, Any], code: str, path: str) -> None:
    (problem,) = refusals(HttpProcessor(**options), USERS)
    assert (problem.code, problem.path) == (code, path)
