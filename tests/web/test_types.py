"""The web app knows the API by the types that are made from its description."""

from __future__ import annotations

import subprocess

import pytest

from tests.web.kit import ROOT


@pytest.mark.slow
def test_the_committed_types_are_those_of_the_api() -> None:
    done = subprocess.run(
        [ROOT / "scripts/web.sh", "types:check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make docs` and commit web/src/api\n{done.stdout}{done.stderr}"
