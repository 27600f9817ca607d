"""The process for questions, with a program without Spark in its place: started, replaced, killed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.control.documents.judge import By, Judge
from penstock.control.fleet.assignments import Flows
from penstock.control.fleet.question_process import QuestionProcess
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry import Registry
from penstock.errors import PenstockError, Problem
from penstock.settings import Settings, load
from penstock.spark.guard import members
from tests.cli.commands import wait_for

LEASE_S = 600.0

# As the real one, it has a child that outlives it; it ends with the code in a file.
PROGRAM = """\
import subprocess, sys, time
from pathlib import Path
subprocess.Popen(["sleep", "600"])
code = Path(sys.argv[0]).with_name("code")
while not code.exists():
    time.sleep(0.02)
given = int(code.read_text())
code.unlink()
sys.exit(given)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({"home": tmp_path / "home", "workers": 1}, env={}, cwd=tmp_path).settings


@pytest.fixture
def flows(settings: Settings) -> Iterator[Flows]:
    settings.home.mkdir()
    registry = Registry.open(settings.registry_url)
    yield Flows(registry)
    registry.close()


@pytest.fixture
def process(
    settings: Settings, flows: Flows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QuestionProcess]:
    program, python = tmp_path / "program.py", tmp_path / "python"
    program.write_text(PROGRAM)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("penstock.control.fleet.processes.sys.executable", str(python))
    monkeypatch.setattr("penstock.control.fleet.question_process.STOP_S", 0.1)
    found = QuestionProcess(settings, [])
    found.flows = flows
    found.start()
    yield found
    found.stop()


def pid_of(process: QuestionProcess) -> int:
    return int(wait_for("the process", lambda: process._process and process._process.pid, 20))


def test_it_is_started_by_a_question_and_replaced_after_a_failure(
    process: QuestionProcess, flows: Flows, tmp_path: Path
) -> None:
    flows.join("w", 1, "http://127.0.0.1:9", "token", LEASE_S, {})
    assert process._process is None
    process.want(urgent=True)
    first = pid_of(process)
    wait_for("its child", lambda: len(members(first)) > 1, 20)
    flows.join(process._worker, first, "http://127.0.0.1:9", "token", LEASE_S, {}, questions=True)
    (tmp_path / "code").write_text("1")
    wait_for("another", lambda: process._process and process._process.pid != first, 20)
    assert members(first) == []
    assert [worker.id for worker in flows.workers()] == ["w"]

    second = pid_of(process)
    (tmp_path / "code").write_text("0")  # it was idle
    # Whoever asked before the failure has asked again, so one more may have been started and ended.
    wait_for("its end", lambda: process._process is None and process._wanted_at is None, 20)
    assert members(second) == []


def test_one_that_does_not_answer_is_killed(process: QuestionProcess) -> None:
    process.want(urgent=True)
    pid = pid_of(process)
    process.kill("another worker")
    assert members(pid)
    process.kill(process._worker)
    assert members(pid) == []


def test_a_start_for_which_nobody_waits_gives_way_to_workers(process: QuestionProcess, flows: Flows) -> None:
    process.want(urgent=False)
    assert not threading.Event().wait(1)
    assert process._process is None
    flows.join("w", 1, "http://127.0.0.1:9", "token", LEASE_S, {})
    pid_of(process)


@pytest.mark.parametrize(
    ("present", "by", "chosen"),
    [
        ("ready", "any", "ready"),
        ("ready", "apart", None),
        ("ready questions", "any", "questions"),
        ("ready questions", "apart", "questions"),
        ("ready questions", "with_flows", "ready"),
        ("questions", "with_flows", None),
    ],
)
def test_who_answers(settings: Settings, flows: Flows, present: str, by: By, chosen: str | None) -> None:
    process = QuestionProcess(settings, [])
    judge = Judge(settings, flows.registry, flows, RpcClient(60), process)
    for name in present.split():
        flows.join(name, 1, "http://127.0.0.1:9", "t", LEASE_S, {}, questions=name == "questions")
    found = judge.worker(0.0, by=by)
    assert (found.id if found else None) == chosen
    wanted = "questions" not in present
    assert (process._wanted_at is not None, process._urgent) == (wanted, wanted and by == "apart")


def test_without_a_process_for_questions_workers_answer(settings: Settings, flows: Flows) -> None:
    judge = Judge(settings, flows.registry, flows, RpcClient(60))
    flows.join("ready", 1, "http://127.0.0.1:9", "t", LEASE_S, {})
    found = judge.worker(0.0, by="apart")
    assert found is not None
    assert found.id == "ready"
    flows.join("far", 1, "http://127.0.0.1:9", "t", LEASE_S, {}, questions=True)
    found = judge.worker(0.0, by="apart")
    assert found is not None
    assert found.id == "far", "one that somebody has started, such as on another machine"


def test_a_question_that_ends_its_process_is_not_given_to_a_worker_with_flows(
    settings: Settings, flows: Flows
) -> None:
    judge = Judge(settings, flows.registry, flows, RpcClient(60))
    asked = []
    for name in ("ready", "questions"):
        flows.join(name, 1, "http://127.0.0.1:9", "t", LEASE_S, {}, questions=name == "questions")

    def question(worker: object) -> None:
        asked.append(worker)
        raise httpx.RemoteProtocolError("Server disconnected without sending a response.")

    with pytest.raises(PenstockError) as failed:
        judge.ask(question, Problem(code="no_worker", message="none"))
    assert failed.value.problems[0].code == "out_of_memory"
    assert len(asked) == 1
