"""A stranger's first minutes: clone the repository, do what the README says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.flows import json_rows

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_pipeline_of_the_readme_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "penstock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    readme = (clone / "README.md").read_text()
    found = re.search(r"<!-- first-pipeline.*?```sh\n(.*?)```", readme, re.DOTALL)
    assert found
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "VIRTUAL_ENV", "PYTHON"))}
    done = subprocess.run(
        ["sh", "-ec", found.group(1)], cwd=clone, env=env, capture_output=True, text=True, timeout=840
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json_rows(clone / "out" / "big-orders")
    assert rows
    assert all(row["amount"] > 50 for row in rows)
    assert done.stdout.count('"gross"') == len(rows)
