"""Conditions on events."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import Invalid
from penstock.streams.filters.conditions import DEEPEST, parse_condition

COLUMNS = {
    "id": 2**62 + 1,
    "amount": 12.5,
    "price": "12.50",
    "customer": "Ada O'Neil",
    "paid": True,
    "note": None,
    "at": "2026-01-02T03:04:05.6Z",
    "address": {"city": "Rome", "tags": ["a", "b"]},
}
TYPED = {
    "offset": 7,
    "time": "2026-01-02T03:04:05.000Z",
    "key": "k1",
    "headers": {"trace": "x"},
    "columns": COLUMNS,
}
RAW = {**{name: TYPED[name] for name in ("offset", "time", "key", "headers")}, "value": '{"a": {"b": 3}}'}


def met(text: str, event: dict[str, Any] = TYPED) -> bool | None:
    return parse_condition(text, list(COLUMNS) if "columns" in event else None)(event)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "amount > 12",
            "AMOUNT >= 12.5",
            "amount <> 1",
            f"id = {2**62 + 1}",
            "price = 12.5",
            "amount < '13'",
        ),
        *(
            "customer = 'Ada O''Neil'",
            "customer LIKE 'Ada%'",
            "customer LIKE '%O_N%l'",
            "customer ILIKE 'ada%'",
        ),
        *(
            "customer NOT LIKE '%x%'",
            "customer LIKE 'Ada O''Neil'",
            "id LIKE '%05'",
            "amount BETWEEN 12 AND 13",
        ),
        *("paid", "paid = true", "NOT paid = false", "note IS NULL", "amount IS NOT NULL"),
        *("customer IN ('eve', 'Ada O''Neil')", "amount NOT IN (1, 2)", "`amount` > 1"),
        *("at > '2026-01-02'", "at < '2026-01-02 03:04:06'", "_time = '2026-01-02T04:04:05+01:00'"),
        *(
            "_key = 'k1'",
            "_headers.trace = 'x'",
            "_offset >= 7",
            "address.city = 'Rome'",
            "address.tags[1] = 'b'",
        ),
        *("amount > 100 OR amount > 1 AND paid", "(amount > 100 OR amount > 1) AND paid"),
    ],
)
def test_an_event_meets_a_condition(text: str) -> None:
    assert met(text) is True


@pytest.mark.parametrize(
    "text",
    [
        *(
            "amount > 13",
            "customer LIKE 'Ada'",
            "customer LIKE 'Ada%Ada%'",
            "customer = 'ada'",
            "paid = false",
        ),
        *(f"id = {2**62}", "note IS NOT NULL", "_key = 'k2'", "address.tags[2] IS NOT NULL"),
    ],
)
def test_an_event_does_not_meet_a_condition(text: str) -> None:
    assert met(text) is False


@pytest.mark.parametrize(
    "text",
    [
        *("note = 'x'", "NOT note = 'x'", "note <> 'x'", "note LIKE '%'", "note IN ('x')", "amount = NULL"),
        *("customer > 5", "paid = 1", "address = 'Rome'", "address.zip = 1", "note = 1 AND amount > 1"),
    ],
)
def test_null_and_other_kinds_compare_with_nothing(text: str) -> None:
    assert met(text) is None


def test_a_raw_event_is_searched_by_the_fields_of_its_json() -> None:
    assert met("value.a.b = 3", RAW)
    assert met("value LIKE '%\"b\": 3%' AND key = 'k1' AND headers.trace = 'x'", RAW)
    assert met("value.a.b = 3", {**RAW, "value": "no JSON"}) is None
    assert met("value.a = 1", {**RAW, "value": {"base64": "gA=="}}) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("amuont > 1", "there is no field 'amuont' (line 1, column 1)"),
        ("amount >\n  x", "a number or a text in single quotes is missing here (line 2, column 3)"),
        ('customer = "x"', "'\"' is not expected here (line 1, column 12)"),
        ("amount > 1 paid", "AND or OR is missing here (line 1, column 12)"),
        ("(amount > 1", ") is missing here (line 1, column 12)"),
        ("amount NOT 5", "IN, LIKE or BETWEEN is missing here (line 1, column 12)"),
        ("amount IS 5", "NULL is missing here (line 1, column 11)"),
        ("AND", "the name of a field is missing here (line 1, column 1)"),
        ("customer LIKE 5", "a pattern in single quotes is missing here (line 1, column 15)"),
    ],
)
def test_what_is_no_condition_is_told_at_its_place(text: str, message: str) -> None:
    with pytest.raises(Invalid) as error:
        met(text)
    (problem,) = error.value.problems
    assert (problem.code, problem.path, problem.message) == ("invalid_filter", "where", message)


def test_a_misspelt_field_is_corrected() -> None:
    with pytest.raises(Invalid) as error:
        met("amuont > 1")
    assert error.value.problems[0].hint == "did you mean 'amount'?"
    with pytest.raises(Invalid) as error:
        met("status = 'paid'", RAW)
    assert "value.status" in str(error.value.problems[0].hint)


@pytest.mark.parametrize("text", ["(" * 1000 + "paid" + ")" * 1000, "NOT " * 1000 + "paid"])
def test_nesting_has_a_limit(text: str) -> None:
    with pytest.raises(Invalid, match="nested too deeply"):
        met(text)
    assert met("(" * (DEEPEST - 1) + "paid" + ")" * (DEEPEST - 1))


def test_a_pattern_with_many_gaps_is_quick() -> None:
    event = {**TYPED, "columns": {**COLUMNS, "customer": "a" * 100_000}}
    assert met("customer LIKE '" + "%a" * 200 + "%b'", event) is False
