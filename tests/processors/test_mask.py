from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from penstock.processors.mask import Masking, MaskProcessor
from tests.processors.test_steps import shape
from tests.sql.helpers import refusal

Empty = Callable[[str], DataFrame]

SCHEMA = "id BIGINT, card STRING, raw BINARY, tags ARRAY<STRING>, u STRUCT<mail: STRING, a: STRUCT<zip: INT>>"


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [
        (7, "4111 1111 1111 1234", b"\x00\xff", ["a@x", None], ("é@x", (123,))),
        (None, None, None, None, None),
        (8, "12", b"", [], (None, None)),
    ]
    return spark.createDataFrame(rows, SCHEMA)


def masked(df: DataFrame, field: str, **how: Any) -> list[Any]:
    step = MaskProcessor(fields=[Masking(field=field, **how)])
    return [row[0] for row in step.apply(df).selectExpr(f"{field} AS it").collect()]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_hashes_are_those_of_the_salted_text(people: DataFrame) -> None:
    assert masked(people, "id", method="hash", salt="s") == [sha(b"s7"), None, sha(b"s8")]
    assert masked(people, "raw", method="hash") == [sha(b"\x00\xff"), None, sha(b"")]
    assert masked(people, "u.mail", method="hash") == [sha("é@x".encode()), None, None]
    assert masked(people, "u.a.zip", method="hash") == [sha(b"123"), None, None]
    assert masked(people, "tags", method="hash") == [[sha(b"a@x"), None], None, []]


@pytest.mark.parametrize("secret", ["k", "k" * 64, "long " * 20])
def test_tokens_are_real_hmacs(people: DataFrame, secret: str) -> None:
    (token, nothing, _) = masked(people, "u.mail", method="tokenise", secret=secret, prefix="tok_")
    assert token == "tok_" + hmac.new(secret.encode(), "é@x".encode(), "sha256").hexdigest()
    assert nothing is None


@pytest.mark.parametrize(
    ("how", "cards"),
    [
        ({}, ["*" * 19, None, "**"]),
        ({"keep_last": 4}, ["*" * 15 + "1234", None, "**"]),
        ({"keep_last": 2, "replacement": "#"}, ["#" * 17 + "34", None, "##"]),
        ({"replacement": ""}, ["", None, ""]),
        ({"pattern": r"\d{4} ", "replacement": "$1\\"}, ["$1\\" * 3 + "1234", None, "12"]),
    ],
)
def test_redacted(people: DataFrame, how: dict[str, Any], cards: list[Any]) -> None:
    assert masked(people, "card", method="redact", **how) == cards


def test_all_else_stays_as_it_is(people: DataFrame) -> None:
    step = MaskProcessor(
        fields=[
            Masking(field="u.a.zip", method="redact"),
            Masking(field="U.MAIL", method="redact"),
            Masking(field="id", method="hash"),
        ]
    )
    result = step.apply(people)
    assert shape(result) == (
        "id string, card string, raw binary, tags array<string>, u struct<mail:string,a:struct<zip:string>>"
    )
    first, second, third = result.select("card", "u").collect()
    assert (first.card, tuple(first.u), tuple(first.u.a)) == (
        people.first().card,
        ("***", ("***",)),
        ("***",),
    )
    assert (second.card, second.u) == (None, None)
    assert (third.card, tuple(third.u)) == ("12", (None, None))


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ([{"field": "crad"}], "fields[0].field", "unknown_column"),
        ([{"field": "u"}], "fields[0].field", "sql_type"),
        ([{"field": "card"}, {"field": "CARD"}], "fields[1].field", "duplicate_column"),
        ([{"field": "card", "pattern": "(a"}], "fields[0].pattern", "invalid_value"),
    ],
)
def test_refusals(empty: Empty, fields: list[Any], path: str, code: str) -> None:
    step = MaskProcessor(fields=[Masking(method="redact", **each) for each in fields])
    problem = refusal(step.apply, empty(SCHEMA))
    assert (problem.path, problem.code) == (path, code)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"method": "tokenise"}, "needs a 'secret'"),
        ({"method": "hash", "keep_last": 4}, "'keep_last' can't be used with method 'hash'"),
        ({"method": "redact", "keep_last": 4, "pattern": "a"}, "can't be used with 'pattern'"),
    ],
)
def test_options_belong_to_their_method(how: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Masking(field="x", **how)
