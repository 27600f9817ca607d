from __future__ import annotations

import base64
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Invalid, Unavailable
from penstock.secrets import Keys


def key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


FILE = Path("/nowhere")
KEYS = Keys(key(), FILE)


@given(st.text(min_size=1), st.from_regex(r"[a-z_]{1,20}", fullmatch=True))
def test_what_is_sealed_can_be_opened_by_its_own_secret_alone(value: str, secret: str) -> None:
    value = value.encode("utf-8", "replace").decode()
    sealed = KEYS.seal(secret, value)
    assert KEYS.open(secret, sealed) == value
    with pytest.raises(Invalid, match="another's"):
        KEYS.open(f"{secret}x", sealed)


def test_a_value_is_sealed_in_another_way_each_time() -> None:
    assert KEYS.seal("a", "same") != KEYS.seal("a", "same")


@given(st.integers(min_value=0), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int) -> None:
    version, fingerprint, text = KEYS.seal("a", "a long enough value").split(".")
    content = bytearray(base64.urlsafe_b64decode(text))
    content[place % len(content)] ^= change
    damaged = base64.urlsafe_b64encode(bytes(content)).decode()
    with pytest.raises(Invalid, match="damaged"):
        KEYS.open("a", f"{version}.{fingerprint}.{damaged}")


@pytest.mark.parametrize("text", ["", "v1", "v1.x", "v2.x.y", "v1.12345678.", "v1.12345678.????", "a.b.c.d"])
def test_other_texts_are_damaged_secrets(text: str) -> None:
    with pytest.raises(Invalid) as raised:
        KEYS.open("a", text)
    assert raised.value.problems[0].code == "secret_unreadable"


def test_a_new_first_key_seals_and_the_old_one_still_opens() -> None:
    old, new = key(), key()
    sealed = Keys(old, FILE).seal("a", "value")
    both = Keys(f"{new},{old}", FILE)
    assert both.open("a", sealed) == "value"
    assert Keys(new, FILE).open("a", both.seal("a", "value")) == "value"
    with pytest.raises(Invalid, match="does not have"):
        Keys(new, FILE).open("a", sealed)


def test_the_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    keys = Keys(None, tmp_path / "home" / "secrets.key")
    makers = [threading.Thread(target=keys.make) for _ in range(8)]
    for each in makers:
        each.start()
    for each in makers:
        each.join()
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600
    assert [path.name for path in keys.file.parent.iterdir()] == ["secrets.key"]
    sealed = keys.seal("a", "value")
    keys.make()
    assert Keys(None, keys.file).open("a", sealed) == "value"


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(b"x" * 31).decode(), "ü"])
def test_a_key_that_is_none_says_so_without_showing_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secrets.key"
    file.write_text(text)
    for keys in [Keys(None, file), Keys(text or " ", FILE)]:
        with pytest.raises(Unavailable, match="32 bytes in Base64") as raised:
            keys.seal("a", "value")
        assert raised.value.problems[0].code == "no_secret_key"
        assert not text or text not in str(raised.value)


def test_a_missing_key_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file") as raised:
        Keys(None, tmp_path / "secrets.key").open("a", KEYS.seal("a", "x"))
    assert str(tmp_path / "secrets.key") in str(raised.value)
