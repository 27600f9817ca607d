"""`penstock apply --plan` and `--accept-reset`, against a real server whose worker runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.control.documents.service import Service
from tests.api.kit import begun, judging, open_service, pipeline, running, stream
from tests.cli.test_client import penstock, told, write


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with (
        open_service(tmp_path_factory.mktemp("plans")) as found,
        judging(found),
        running(found) as api,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PENSTOCK_SERVER", api.url)
        yield found


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def files(path: str) -> dict[str, Any]:
    return {"type": "file", "path": path, "format": "json", "schema": "id BIGINT"}


def test_a_plan_tells_what_would_be_lost_and_asks(service: Service) -> None:
    write("first.yaml", pipeline("Kept", source=files("in")), stream("Same"))
    assert penstock("apply", "first.yaml").exit_code == 0
    begun(service, "Kept")
    new = pipeline("New", source={"type": "stream", "stream": "fresh", "position": "latest"})
    write("second.yaml", pipeline("Kept", source=files("out")), stream("Same"), stream("Fresh"), new)

    plan = penstock("apply", "second.yaml", "--plan")
    assert plan.exit_code == 0, plan.output
    assert plan.stdout.splitlines() == [
        "unchanged stream Same (second.yaml)",
        "create    stream Fresh (second.yaml)",
        "update    pipeline Kept (second.yaml)",
        "    ~ spec.source.path: 'in' → 'out'",
        "    resets   source source: offsets of the old source don't apply to the new one: it is read from "
        "its start position (to rebuild the state: --from earliest)",
        "    keeps    sink drop: no change",
        "create    pipeline New (second.yaml)",
    ]
    assert "1 document needs --accept-reset, nothing was saved" in plan.stderr
    items = told("apply", "second.yaml", "--plan")["items"]
    assert [item["plan"] and item["plan"]["resets"] for item in items] == [False, None, True, None]

    refused = penstock("apply", "second.yaml")
    assert (refused.exit_code, "error[would_reset] spec.source" in refused.stderr) == (1, True)
    assert "--accept-reset" in refused.stderr
    assert "created   pipeline New" in refused.stdout, "one that is refused does not keep the others"
    assert penstock("import", "second.yaml").exit_code == 1
    assert penstock("apply", "second.yaml", "--accept-reset").exit_code == 0
    assert told("rollback", "Kept", "1")["revision"] == 3
    assert penstock("import", "second.yaml", "--accept-reset").exit_code == 0


def test_a_plan_of_what_is_wrong(service: Service) -> None:
    write("bad.yaml", pipeline("Bad", source={"type": "nonsense"}))
    plan = penstock("apply", "bad.yaml", "--plan")
    assert plan.exit_code == 3
    assert "error[" in plan.stderr
