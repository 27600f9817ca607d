"""`penstock dead-letters` against a real server whose worker runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.api.kit import Api, judging, open_service, pipeline, running
from tests.api.test_letters import write


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with (
        open_service(tmp_path_factory.mktemp("letters")) as service,
        judging(service),
        running(service) as found,
    ):
        found.client.post("/pipelines", json=pipeline("orders"))
        write(found, ("clean", "bad", '{"id":"x"}'), ("source", "malformed", "no json"))
        yield found


@pytest.fixture(autouse=True)
def place(server: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER", server.url)


def letters(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", *arguments])


def told(*arguments: str) -> Any:
    result = letters(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_letters_are_listed_and_shown() -> None:
    result = letters("ls", "orders", "--code", "malformed")
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()[1:]
    assert line.startswith("1 ")
    assert line.split()[-6:] == ["source", "malformed", "1", "new", "no", "json"]
    assert "2 letters in total: clean bad 1, source malformed 1" in result.stderr
    shown = letters("show", "orders", "0").stdout
    assert "it is bad" in shown
    assert '"id": "x"' in shown
    missing = letters("show", "orders", "9")
    assert (missing.exit_code, "not_found" in missing.stderr) == (1, True)


def test_an_event_is_edited_on_the_line_in_a_file_and_in_an_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told("edit", "orders", "0", "--event", '{"id": 1}')["event"] == {"id": 1}
    (tmp_path / "event.json").write_text('{"id": 2}')
    assert told("edit", "orders", "0", "--event", f"@{tmp_path / 'event.json'}")["event"] == {"id": 2}
    monkeypatch.setenv("EDITOR", "sed -i s/2/3/")
    monkeypatch.delenv("VISUAL", raising=False)
    assert told("edit", "orders", "0")["event"] == {"id": 3}
    assert "original" in letters("show", "orders", "0").stdout
    assert letters("edit", "orders", "0", "--event", '{"id": "x"}').stdout == "orders 0 unchanged\n"
    assert letters("edit", "orders", "0", "--event", "{no").exit_code == 2
    monkeypatch.delenv("EDITOR")
    assert letters("edit", "orders", "0").exit_code == 2


def test_letters_are_discarded_and_restored() -> None:
    assert letters("discard", "orders", "0", "1").stdout == "orders 0 discarded\norders 1 discarded\n"
    assert told("ls", "orders", "--state", "new")["letters"] == []
    assert [each["state"] for each in told("discard", "orders", "0", "1", "--undo")["letters"]] == [
        "new",
        "new",
    ]


def test_a_letter_whose_event_is_gone_is_not_sent() -> None:
    refused = letters("send", "orders", "0")
    assert (refused.exit_code, "not_in_input" in refused.stderr) == (1, True)


def test_a_replay_has_to_name_letters() -> None:
    refused = letters("replay", "orders")
    assert (refused.exit_code, "nothing_chosen" in refused.stderr) == (2, True)
