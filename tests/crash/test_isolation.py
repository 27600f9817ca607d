"""Questions that would ruin a JVM, JVMs that hang, and ends that leave no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from penstock.spark.guard import members
from tests.cli.commands import family_of, wait_for
from tests.product import Product
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow

DEADLINE_S, DRAIN_S, STUCK_S = 12.0, 3.0, 15.0
SLOW_S = 10.0
"""Seconds beyond the deadline and its grace in which a busy machine has sent the answer."""

SETTINGS = {
    "PENSTOCK_QUESTIONS_PROCESS": "true",
    "PENSTOCK_QUESTIONS_DEADLINE_MS": str(round(DEADLINE_S * 1000)),
    "PENSTOCK_WORKER_DRAIN_MS": str(round(DRAIN_S * 1000)),
    "PENSTOCK_WORKER_STUCK_MS": str(round(STUCK_S * 1000)),
}

BESIDE: dict[str, Any] = {
    "kind": "Pipeline",
    "metadata": {"name": "beside"},
    "spec": {"source": {"type": "generate", "rate": 20}, "sinks": [{"type": "drop"}]},
    "status": "active",
}

HOSTILE = {
    "explode": "SELECT explode(sequence(1, 50000000 * id)) AS x FROM input",
    "nested": "SELECT id FROM input WHERE " + "(" * 20_000 + "id > 0" + ")" * 20_000,
    "regex": "SELECT rlike(concat(repeat('a', 40), '!'), '(.*a){25}$') AS x, id FROM input",
    "groups": "SELECT rlike(concat(repeat('a', 60), '!'), '(a+)+$') AS x, id FROM input",
    "repartition": "SELECT /*+ REPARTITION(1000000) */ id FROM input",
    "repeat": "SELECT repeat('a', cast(2e9 AS INT)) AS x FROM input",
    "rpad": "SELECT rpad('a', 2000000000, 'b') AS x FROM input",
    "sequence": "SELECT size(sequence(1, 2000000000 * id)) AS x FROM input",
    "cross join": "SELECT count(*) AS x FROM input, range(10000000000) b, range(1000000000) c"
    " WHERE b.id * c.id % 7 = 3",
}
"""Steps of test runs that need more time, memory or stack than there is."""

BY_DAY = ("explode",)

HARMLESS = ("repartition", "groups")
"""Those that a newer Spark or Java may answer after all."""

ENDED = {"deadline_exceeded", "out_of_memory", "test_timeout"}
"""The codes of test runs that were begun and ended."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    found = Product(tmp_path_factory.mktemp("isolation"), env=SETTINGS)
    yield found
    found.close()


@pytest.fixture
def product(shared: Product) -> Product:
    """The one product of these tests, with a pipeline that runs."""
    if shared.process is None or shared.process.poll() is not None:
        shared.up()
    if shared.client.get("/pipelines/beside").status_code == 404:
        shared.create(BESIDE)
    shared.wait_for_batches("beside")
    return shared


def tried(product: Product, sql: str) -> httpx.Response:
    """The answer to a test run of a step, once there is a process to ask."""
    spec = {"source": {"type": "http", "schema": "id BIGINT"}, "sinks": [{"type": "drop"}]}
    spec["processors"] = [{"id": "step", "type": "sql", "query": sql}]
    document = {"kind": "Pipeline", "metadata": {"name": "tried"}, "spec": spec}
    body = {"document": document, "events": [{"id": 1}]}

    def answer() -> httpx.Response | None:
        given = product.client.post("/test", json=body)
        return None if "no_worker" in given.text else given

    return wait_for("a process for questions", answer)  # type: ignore[no-any-return]


def worker_of(product: Product, state: str) -> psutil.Process:
    """The process of a worker with a state, once there is one."""
    found = wait_for(
        f"a worker that is {state}",
        lambda: [each for each in product.client.get("/workers").json() if each["state"] == state],
    )
    return psutil.Process(found[0]["pid"])


def jvm_of(worker: psutil.Process) -> psutil.Process:
    (jvm,) = [child for child in worker.children(recursive=True) if child.name() == "java"]
    return jvm


@pytest.mark.parametrize("name", HOSTILE if NIGHTLY else BY_DAY)
def test_a_hostile_test_run_is_answered_in_time_and_flows_go_on(product: Product, name: str) -> None:
    assert tried(product, "SELECT id FROM input").json()["ok"], "there is a process to ask"
    flows = worker_of(product, "ready").pid
    began = time.monotonic()
    answer = tried(product, HOSTILE[name])
    assert time.monotonic() - began < DEADLINE_S + 5 + SLOW_S
    if answer.status_code == 200:
        assert not answer.json()["ok"] or name in HARMLESS
    else:
        assert answer.json()["code"] in ENDED, answer.text
        assert answer.json()["hint"]
    assert worker_of(product, "ready").pid == flows
    product.wait_for_batches("beside", 2)


def test_questions_are_answered_apart_from_flows_and_in_a_process_that_is_replaced(product: Product) -> None:
    assert tried(product, "SELECT id FROM input").json()["ok"]
    answering, flows = worker_of(product, "questions"), worker_of(product, "ready")
    assert os.getsid(answering.pid) == answering.pid
    assert answering.nice() >= flows.nice()
    answering.suspend()  # as a whole, so that it cannot end itself
    answer = product.client.post("/query", json={"sql": "SELECT 1", "timeout_ms": 1000})
    assert (answer.status_code, answer.json()["code"]) == (408, "deadline_exceeded")
    wait_for("its end", lambda: not members(answering.pid))
    assert product.client.get("/workers").json()[0]["pid"] == flows.pid
    product.wait_for_batches("beside")


def test_a_worker_whose_jvm_hangs_is_shown_and_replaced(product: Product) -> None:
    worker = worker_of(product, "ready")
    jvm_of(worker).suspend()
    began, told = time.monotonic(), []

    def stuck() -> bool:
        attention = product.client.get("/overview").json()["attention"]
        told.extend(each["message"] for each in attention if each["code"] == "worker_stuck")
        return bool(told)

    wait_for("the finding", stuck, 30)
    assert "its JVM isn't responding" in told[0]
    wait_for("its end", lambda: not members(worker.pid), 30)
    assert time.monotonic() - began < 30
    product.wait_for_batches("beside")
    assert worker_of(product, "ready").pid != worker.pid
    messages = [each["message"] for each in product.client.get("/overview").json()["attention"]]
    assert any("was stopped because its JVM isn't responding" in each for each in messages), messages


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL] if NIGHTLY else [signal.SIGTERM])
def test_no_process_is_left_behind_by_an_end(product: Product, number: signal.Signals) -> None:
    assert product.process is not None
    assert tried(product, "SELECT id FROM input").json()["ok"]
    for state in ("ready", "questions"):
        jvm_of(worker_of(product, state)).suspend()
    family = family_of(product.process.pid)
    product.process.send_signal(number)
    product.process.communicate(timeout=DRAIN_S + 60)
    _, left = psutil.wait_procs(family, timeout=DRAIN_S + 30 if number == signal.SIGKILL else 5)
    alive = []
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            alive += [process.name()] if process.status() != psutil.STATUS_ZOMBIE else []
    assert alive == []


def test_a_worker_whose_heap_is_filled_is_replaced(tmp_path: Path) -> None:
    """Without a process for questions a test run fills the heap of the flows, and ends their JVM."""
    env = {**SETTINGS, "PENSTOCK_QUESTIONS_PROCESS": "false", "PENSTOCK_QUESTIONS_DEADLINE_MS": "120000"}
    product = Product(tmp_path, env={**env, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"})
    try:
        product.up()
        product.create(BESIDE)
        product.wait_for_batches("beside")
        worker = worker_of(product, "ready")
        question = threading.Thread(target=tried, args=(product, HOSTILE["explode"]), daemon=True)
        question.start()
        wait_for("its end", lambda: not members(worker.pid), 120)
        product.wait_for_batches("beside")
        family = family_of(product.process.pid) if product.process else []
        assert product.down() == 0
        assert not psutil.wait_procs(family, timeout=5)[1]
    finally:
        product.close()
