"""`penstock up` and `penstock worker` in real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from penstock.cli.lock import Lock, Taken
from tests.cli.commands import PATIENCE_S, Penstock, family_of, interrupt, wait_for
from tests.cli.conftest import Command

STEADY = """\
kind: Pipeline
metadata: {name: steady}
spec:
  source: {type: generate, rate: 100}
  processors: [{type: filter, where: seq % 2 = 0}]
  sinks: [{type: drop}]
"""


def start(penstock: Penstock, *options: str) -> subprocess.Popen[str]:
    """A server that listens; the commands that follow speak with it."""
    process = penstock.start("up", "--port", "0", *options)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"listens on (http://\S+)", line)
    assert found, line + process.communicate()[1]
    penstock.env["PENSTOCK_SERVER"] = found[1]
    return process


def ask(penstock: Penstock, name: str) -> dict[str, Any]:
    """What the server says of a pipeline; without a process of its own, since Spark needs the cores."""
    url = f"{penstock.env['PENSTOCK_SERVER']}/pipelines/{name}"
    return dict(httpx.get(url, trust_env=False, timeout=PATIENCE_S).json())


@pytest.mark.slow
def test_up_runs_pipelines_survives_a_kill_and_ends_in_order(penstock: Penstock) -> None:
    process = start(penstock, "--demo")
    second = penstock("up", "--port", "0")
    assert second.returncode == 1
    assert "is in use by a running `penstock up` at http://" in second.stderr
    assert second.stdout == ""

    applied = penstock("apply", penstock.write("steady.yaml", STEADY))
    assert applied.returncode == 0, applied.stderr
    wait_for("events", lambda: ask(penstock, "steady")["ops"]["input_events"])
    wait_for("the demo", lambda: "status" in ask(penstock, "demo_visits"))
    demo = {p["name"]: p["status"] for p in penstock.json("get", "pipelines", "--label", "demo")["items"]}
    assert demo["demo orders"] == "active"
    assert demo["demo broken"] == "paused"

    family = family_of(process.pid)
    process.kill()
    process.communicate()
    assert not psutil.wait_procs(family, timeout=60)[1], "workers end by themselves"

    process = start(penstock)
    wait_for("the pipeline", lambda: ask(penstock, "steady")["phase"] == "running")
    paused = penstock("pause", "steady")
    assert paused.stdout == "steady paused (idle)\n"
    page = penstock("describe", "pipeline", "steady")
    assert "status       paused (idle)" in page.stdout

    family = family_of(process.pid)
    out, err = interrupt(process, signal.SIGTERM)
    assert process.returncode == 0, err
    assert "worker ready after" in out
    assert out.endswith("stopped\n")
    assert not psutil.wait_procs(family, timeout=60)[1], "nothing is left running"
    assert penstock("get", "pipelines").returncode == 1


@pytest.mark.slow
def test_without_workers_up_serves_documents_alone(penstock: Penstock) -> None:
    process = start(penstock, "--workers", "0")
    assert process.stdout is not None
    assert any("no worker started" in process.stdout.readline() for _ in range(2))
    assert penstock.json("get", "pipelines")["items"] == []
    refused = penstock("apply", penstock.write("steady.yaml", STEADY))
    assert refused.returncode == 1
    assert "error[no_worker]" in refused.stderr

    taken = penstock(
        "up", "--workers", "0", "--home", "other", "--port", penstock.env["PENSTOCK_SERVER"][-5:]
    )
    assert taken.returncode == 1
    assert "error[port_in_use]" in taken.stderr

    _, err = interrupt(process, signal.SIGINT)
    assert process.returncode == 0, err


def test_a_machine_without_java_is_told_so(in_process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for command in ("up", "worker"):
        done = in_process(command)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "error[no_java] Spark needs Java" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_registry_out_of_reach_is_told_without_its_password(penstock: Penstock, command: str) -> None:
    penstock.env["PENSTOCK_REGISTRY_URL"] = "postgresql://me:hush@127.0.0.1:9/penstock"
    done = penstock(command)
    assert done.returncode == 1
    assert "error[registry_down] registry.url:" in done.stderr
    assert "hush" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_worker_on_a_leash_ends_with_its_parent_even_while_it_starts(penstock: Penstock) -> None:
    process = penstock.start("worker", "--leash")
    wait_for("Java", lambda: len(family_of(process.pid)) > 1)
    family = family_of(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    assert not psutil.wait_procs(family, timeout=60)[1]


def test_a_second_signal_ends_at_once() -> None:
    script = (
        "import time; from penstock.cli.signals import on_stop; "
        "on_stop(lambda: print('asked', flush=True)); print('ready', flush=True)\n"
        "while True: time.sleep(0.05)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    script = f"import time; from penstock.cli.lock import *; Lock(Path({str(path)!r}), 'it').__enter__(); "
    holder = subprocess.Popen(
        [sys.executable, "-c", script + "print(1, flush=True); time.sleep(60)"], stdout=-1
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(Taken, match=f"it is in use by pid {holder.pid}"), Lock(path, "it"):
        pass
    holder.kill()
    holder.wait()
    with Lock(path, "it"):
        assert "pid" in path.read_text()
    assert path.read_text() == ""


@pytest.mark.slow
def test_more_streams_than_a_shell_grants_open_files(penstock: Penstock) -> None:
    penstock.through = ("sh", "-c", 'ulimit -Sn 200 && exec "$@"', "sh")
    process = start(penstock, "--workers", "0")
    server = penstock.env["PENSTOCK_SERVER"]
    with httpx.Client(base_url=server, trust_env=False, timeout=PATIENCE_S) as client:
        for name in (f"s{i}" for i in range(150)):
            made = client.post("/streams", json={"metadata": {"name": name}})
            assert made.status_code == 201, made.text
            sent = client.post(f"/streams/{name}/events", json={"n": 1})
            assert sent.is_success, sent.text
    assert psutil.Process(process.pid).num_fds() > 200
