"""Tokens, passwords and limits, without HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.access.attempts import PER_USER, Attempts, TooManyAttempts
from penstock.control.access.roles import MEANINGS, may_grant, permits
from penstock.control.access.secrets import digest, join_token, matches, new_id, new_secret, split_token


@given(st.text())
def test_any_text_is_a_token_or_is_not(text: str) -> None:
    parts = split_token(text)
    assert parts is None or join_token(*parts) == text


def test_a_token_is_what_it_was_made_of() -> None:
    number, secret = new_id(), new_secret()
    assert split_token(join_token(number, secret)) == (number, secret)
    assert matches(secret, digest(secret))
    assert not matches(secret + "x", digest(secret))
    assert not matches(secret, "")


def test_each_role_includes_the_ones_before() -> None:
    roles = list(MEANINGS)
    for have, role in enumerate(roles):
        assert [permits(role, need) for need in roles] == [have >= need for need in range(len(roles))]
    assert [permits(role, "ingest") for role in roles] == [False, True, True, True]
    assert not any(permits(role, "worker") for role in roles)
    assert not any(permits(token, need) for token in ("ingest", "worker") for need in roles)
    assert [may_grant(role, "worker") for role in roles] == [False, False, False, True]
    assert not may_grant("ingest", "ingest")


def test_log_ins_of_a_user_wait_longer_each_time() -> None:
    attempts = Attempts()
    for _ in range(PER_USER):
        attempts.begin("ann", "10.0.0.1")
    with pytest.raises(TooManyAttempts) as refused:
        attempts.begin("ann", "10.0.0.2")
    assert 0 < refused.value.retry_after <= 30
    attempts.begin("bob", "10.0.0.1")
    attempts.succeeded("ann", "10.0.0.1")
    attempts.begin("ann", "10.0.0.1")


def test_the_roles_of_the_docs_are_those_of_the_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    for role, meaning in MEANINGS.items():
        assert f"| `{role}` | {meaning} |" in page
