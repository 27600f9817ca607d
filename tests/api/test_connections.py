"""Connection tests over HTTP, made by a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.kit import Api, codes


@pytest.mark.slow
def test_a_worker_tests_the_connection(live: Api, tmp_path: Path) -> None:
    def check(**spec: Any) -> Any:
        answer = live.client.post("/connectors/file/check", json={"role": "source", "spec": spec})
        assert answer.status_code == 200, answer.text
        return answer.json()

    (tmp_path / "one.json").write_text("{}\n")
    found = check(path=str(tmp_path), format="json")
    assert found == {
        "checked": True, "problems": [], "offers": {"files": [str(tmp_path / "one.json")]}, "sample": [],
    }  # fmt: skip
    (problem,) = check(path=str(tmp_path / "gone"), format="json")["problems"]
    assert (problem["code"], problem["path"]) == ("path_not_found", "path")
    assert [problem["path"] for problem in check(format="json")["problems"]] == ["path"]


def test_an_unknown_connector_is_not_found(client: httpx.Client) -> None:
    answer = client.post("/connectors/kafak/check", json={"role": "source", "spec": {}})
    assert (answer.status_code, codes(answer)) == (404, ["not_found"])
    assert "kafka" in answer.json()["hint"]
    assert client.post("/connectors/drop/check", json={"role": "source", "spec": {}}).status_code == 404
    assert client.post("/connectors/file/check", json={"role": "sink"}).status_code == 422
