"""Spark's Python processes by forking: the launcher, the server, and what Spark makes of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from penstock.spark.fork_server import PRELOADED, ForkServer
from penstock.spark.launcher import SERVER
from tests.cli.commands import wait_for
from tests.flows import keeper, pipeline, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TELL = """
import json, os, sys
path = os.environ["TELL"]
told = {"argv": sys.argv, "cwd": os.getcwd(), "word": os.environ.get("WORD"), "parent": os.getppid(),
        "hash": hash("penstock"), "threads": len(os.listdir("/proc/self/task"))}
with open(path + ".part", "w") as file:
    json.dump(told, file)
os.replace(path + ".part", path)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.stop()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "tell.py").write_text(TELL)
    return tmp_path


def call(server: ForkServer | None, modules: Path, *arguments: str, **variables: str) -> dict[str, object]:
    """What a process says of itself that was started as Spark starts a Python."""
    told = modules / "told.json"
    told.unlink(missing_ok=True)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(modules), "TELL": str(told), **variables}
    if server is not None:
        env[SERVER] = str(server.address)
    python = server.python if server else ForkServer.launcher(modules)
    subprocess.run([python, *arguments], env=env, cwd=modules, check=True, timeout=60)
    wait_for("the process", told.exists)
    return dict(json.loads(told.read_text()))


def test_a_forked_process_has_the_arguments_environment_and_directory_of_its_caller(
    server: ForkServer, modules: Path
) -> None:
    told = call(server, modules, "-m", "tell", "one", "", "two words", WORD="a=b\nc")
    assert told["parent"] == server.pid
    assert told["argv"][1:] == ["one", "", "two words"]
    assert told["cwd"] == str(modules)
    assert told["word"] == "a=b\nc"


def test_forked_processes_agree_on_hashes_as_spark_wants_it(server: ForkServer, modules: Path) -> None:
    command = [sys.executable, "-c", "print(hash('penstock'))"]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    expected = int(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert call(server, modules, "-m", "tell")["hash"] == expected


def test_nothing_that_is_preloaded_starts_threads_that_a_fork_would_lose(
    server: ForkServer, modules: Path
) -> None:
    call(server, modules, "-m", "tell")
    names = {
        Path(f"/proc/{server.pid}/task/{thread.id}/comm").read_text().strip()
        for thread in psutil.Process(server.pid).threads()
    }
    assert names - {"jemalloc_bg_thd"} == {"python"}  # jemalloc starts its own again after a fork


def test_what_spark_runs_steps_in_is_preloaded() -> None:
    from penstock.engine.plan.python_steps import PythonSteps

    assert PythonSteps.__module__ in PRELOADED


@pytest.mark.parametrize("variables", [{}, {SERVER: "/nonexistent/socket"}], ids=["no server", "gone"])
def test_without_a_server_the_launcher_is_an_ordinary_python(
    modules: Path, variables: dict[str, str]
) -> None:
    told = call(None, modules, "-m", "tell", "one", **variables)
    assert told["parent"] == os.getpid()
    assert told["argv"][1:] == ["one"]


def test_what_is_no_module_is_left_to_an_ordinary_python(server: ForkServer) -> None:
    env = {**os.environ, SERVER: str(server.address)}
    command = [server.python, "-c", "import os; print(os.getppid())"]
    assert int(subprocess.run(command, env=env, capture_output=True, check=True).stdout) == os.getpid()


def test_a_request_that_breaks_off_does_no_harm(server: ForkServer, modules: Path) -> None:
    import socket

    for part in (b"", b"\0\0", b"\0\0\xff\xffabc"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(server.address))
            connection.sendall(part)
    assert call(server, modules, "-m", "tell")["parent"] == server.pid


def test_a_daemon_of_spark_uses_the_pipes_of_its_launcher(server: ForkServer) -> None:
    env = {
        **os.environ,
        SERVER: str(server.address),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(server.address.parent),  # the path of a socket has to be short
    }
    launcher = subprocess.Popen(
        [server.python, "-m", "pyspark.daemon", "pyspark.worker"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert launcher.stdin
    assert launcher.stdout
    length = int.from_bytes(launcher.stdout.read(4), "big")
    address = Path(launcher.stdout.read(length).decode())
    assert address.is_socket()
    assert launcher.poll() is None  # or Java would close the pipes
    launcher.stdin.close()  # how Spark ends a daemon
    launcher.wait(30)
    assert not address.exists()


def test_the_server_ends_with_the_process_that_started_it_however_that_ends() -> None:
    code = """
    from penstock.spark.fork_server import ForkServer
    server = ForkServer()
    print(server.pid, server.address.parent, flush=True)
    input()
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    pid, directory = owner.stdout.readline().split()
    server = psutil.Process(int(pid))
    assert Path(directory).is_dir()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    server.wait(30)
    assert not Path(directory).exists()


@pytest.mark.slow
def test_all_python_processes_of_a_flow_are_forks(spark: SparkSession, tmp_path: Path) -> None:
    """A contract with Spark: whatever Python it starts for a flow comes from the fork server."""
    from penstock.spark.fork_server import fork_server

    raw = pipeline(source={"type": "generate", "rate": 10})
    with running(keeper(spark, raw, tmp_path / "c")) as kept:
        wait_for("the flow", lambda: kept.state.phase == "running")
        jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)
        own = {child.pid for child in jvm.children(recursive=True) if _has_loaded(child, "pyarrow")}
        server = fork_server()
        assert server is not None
        forks = psutil.Process(server.pid).children()
        assert not own
        assert any(_has_loaded(fork, "pyarrow") for fork in forks)


def _has_loaded(process: psutil.Process, library: str) -> bool:
    try:
        return library in Path(f"/proc/{process.pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
