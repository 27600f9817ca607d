"""What is installed brings the web app along."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.cli.commands import quiet_environment
from tests.files import copy_linked
from tests.web.kit import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheel(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from a clone."""
    clone = tmp_path_factory.mktemp("clone") / "penstock"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    # What the app is made of has been downloaded once.
    copy_linked(ROOT / "web/node_modules", clone / "web/node_modules")
    target = clone.parent / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", target, clone], check=True
    )
    (found,) = target.glob("penstock-*.whl")
    return found


def test_a_wheel_has_the_app_and_nothing_else_of_the_web(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "penstock/ui/index.html" in names
    assert any(re.fullmatch(r"penstock/ui/assets/index-[\w-]+\.js\.gz", name) for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ready", ".tsx"))]


def test_an_installed_wheel_serves_the_app(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv/bin/python"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel]
    subprocess.run(install, check=True)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # those of this environment
    env = quiet_environment() | {"PATH": str(python.parent)}  # no Node
    command = [python, "-m", "penstock.cli.main", "up", "--workers", "0", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, text=True, stdout=-1, stderr=-1)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, process.communicate()[1]
        with httpx.Client(base_url=found.group(), trust_env=False, timeout=60) as client:
            page = client.get("/ui/streams")
            assert page.status_code == 200
            (script,) = re.findall(r'<script[^>]* src="(/ui/assets/[^"]+)"', page.text)
            assert client.get(script).headers["content-encoding"] == "gzip"
    finally:
        process.kill()
        process.communicate()
