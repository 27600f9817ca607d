"""A stranger's first minutes: clone the repository, do what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.files import copy_linked
from tests.flows import json_rows
from tests.java import QUICK

ROOT = Path(__file__).parents[2]


def lend_packages(clone: Path) -> None:
    """Give a clone an environment with the packages of this one.

    Set-up checks them against the lock file and installs Penstock. To download them once more would show
    nothing new: continuous integration has just set up a fresh clone.
    """
    venv.create(clone / ".venv", symlinks=True)
    (target,) = (clone / ".venv").glob("lib/python*/site-packages")
    copy_linked(Path(sysconfig.get_path("purelib")), target)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_pipeline_of_the_readme_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "penstock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    lend_packages(clone)
    readme = (clone / "README.md").read_text()
    found = re.search(r"<!-- first-pipeline.*?```sh\n(.*?)```", readme, re.DOTALL)
    assert found
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "VIRTUAL_ENV", "PYTHON"))}
    env |= {"JAVA_TOOL_OPTIONS": QUICK, "PENSTOCK_CLASS_ARCHIVE": "false"}
    done = subprocess.run(
        ["sh", "-ec", found.group(1)], cwd=clone, env=env, capture_output=True, text=True, timeout=840
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (command,) = (clone / ".venv/bin").glob("penstock")
    assert str(clone) in command.read_text(), "set-up has installed Penstock"
    rows = json_rows(clone / "out" / "big-orders")
    assert rows
    assert all(row["amount"] > 50 for row in rows)
    assert done.stdout.count('"gross"') == len(rows)
