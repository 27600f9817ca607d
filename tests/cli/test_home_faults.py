"""A home that cannot be used: every command says what to do about it, and a running server survives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api.kit import stream
from tests.cli.conftest import Command
from tests.penstock_process import penstock_up
from tests.servers import unavailable

MEGABYTE = 1024 * 1024


@contextmanager
def mounted(place: Path, size: int) -> Iterator[Path]:
    """A small file system in memory."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        unavailable("only root can mount a small file system")
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(directory: Path) -> Path:
    """Leave no byte of a file system free."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (MEGABYTE, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler


def refused(in_process: Command, home: Path, code: str) -> None:
    result = in_process("up", "--workers", "0", "--port", "0", "--home", str(home))
    assert result.exit_code == 1, result.output
    lines = result.output.strip().splitlines()
    assert lines[0].startswith(f"error[{code}]"), result.output
    assert lines[1].strip().startswith("hint:")
    assert len(lines) == 2
    assert "Traceback" not in result.output


def test_a_home_that_is_a_file(in_process: Command, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    refused(in_process, tmp_path / "home", "not_a_directory")
    refused(in_process, tmp_path / "home" / "below", "not_a_directory")


@pytest.mark.parametrize("content", [b"no database at all" * 1000, None], ids=["text", "torn"])
def test_a_damaged_registry(in_process: Command, tmp_path: Path, content: bytes | None) -> None:
    from penstock.control.registry import Registry

    file = tmp_path / "registry.db"
    if content is None:
        Registry.open(f"sqlite:///{file}").close()
        whole = file.read_bytes()
        content = whole[:4096] + b"\x55" * (len(whole) - 4096)
    file.write_bytes(content)
    result = in_process("up", "--workers", "0", "--port", "0", "--home", str(tmp_path))
    assert result.exit_code == 1
    assert "error[registry_damaged]" in result.output
    assert "hint: stop Penstock and restore registry.db" in result.output
    listed = in_process("worker", "token", "ls", "--home", str(tmp_path))
    assert "Traceback" not in listed.output


def test_a_full_disk(in_process: Command, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", MEGABYTE) as disk:
        fill(disk)
        refused(in_process, disk, "disk_full")


def test_a_read_only_disk(in_process: Command, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", MEGABYTE) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        refused(in_process, disk, "read_only")


def test_a_home_of_somebody_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        unavailable("only root can become another user")
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    program = f"""
import os
from pathlib import Path
from penstock.disk import require_home
from penstock.errors import PenstockError
os.setgid(65534)
os.setuid(65534)
try:
    require_home(Path({str(home)!r}))
except PenstockError as error:
    print(error.problems[0].code)
"""
    for above in [home, *home.parents]:
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o001)
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "no_permission\n", found.stderr


@pytest.mark.slow
def test_a_running_server_survives_a_full_disk(tmp_path: Path) -> None:
    with (
        mounted(tmp_path / "disk", 16 * MEGABYTE) as disk,
        penstock_up(disk / "home", streams_free_bytes=0) as server,
    ):
        assert server.client.post("/streams", json=stream("before")).status_code == 201
        assert server.client.post("/streams/before/events", json={"n": 1}).status_code == 200
        filler = fill(disk)
        for number in range(3):
            saved = server.client.post("/streams", json=stream(f"new {number}"))
            assert (saved.status_code, saved.json()["code"]) == (503, "disk_full"), saved.text
            sent = server.client.post("/streams/before/events", json={"n": "x" * 100_000})
            assert (sent.status_code, sent.json()["code"]) == (503, "disk_full"), sent.text
        assert len(server.client.get("/streams/before/events").json()["events"]) == 1
        assert server.client.get("/healthz").status_code == 200
        filler.unlink()
        assert server.client.post("/streams", json=stream("after")).status_code == 201
        assert server.client.post("/streams/before/events", json={"n": 2}).status_code == 200
        assert len(server.client.get("/streams/before/events").json()["events"]) == 2
