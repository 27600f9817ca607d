from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from penstock.processors.js import child, sandbox
from tests.processors.scripts import Script, ids, no_processes_left, run

TIGHT = {"cpu_ms": 100, "timeout_ms": 300, "mem_mb": 32}
PATIENT = {"cpu_ms": 20_000, "timeout_ms": 20_000, "mem_mb": 32}


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    with no_processes_left():
        yield


def when_three(action: str) -> str:
    return f"for (const e of events) if (e.id === 3) {{ {action} }}"


@pytest.mark.parametrize(
    ("action", "limits", "code"),
    [
        ("while (true) {}", {**TIGHT, "timeout_ms": 20_000}, "js_cpu_limit"),
        ("/(a+)+b/.test('a'.repeat(50))", {**TIGHT, "timeout_ms": 20_000}, "js_cpu_limit"),
        ("while (true) {}", {**TIGHT, "cpu_ms": 20_000}, "js_timeout"),
        ("const all = []; while (true) all.push(new Array(99).fill(1))", PATIENT, "js_memory_limit"),
        ("const all = []; while (true) all.push('x'.repeat(999) + all.length)", PATIENT, "js_memory_limit"),
        ("const all = []; while (true) all.push(new Uint8Array(1e6))", PATIENT, "js_memory_limit"),
    ],
)
def test_an_event_that_reaches_a_limit_is_refused_and_the_others_go_on(
    action: str, limits: dict[str, int], code: str
) -> None:
    script = Script(
        "id BIGINT", inline=f"function processBatch(events) {{ {when_three(action)} }}", limits=limits
    )
    ran = script(*ids(1, 2, 3, 4))
    assert [row["id"] for row in ran.rows] == [1, 2, 4]
    assert ran.faults == [(2, code)]
    assert script(*ids(5, 6)).rows == ids(5, 6)


def test_a_limit_is_named() -> None:
    assert run("while (true) {}", *ids(1), limits={**TIGHT, "timeout_ms": 20_000}).message == (
        "the batch took more than 100 ms of processor time (limits.cpu_ms)"
    )


def test_time_that_is_only_waited_for_is_not_processor_time() -> None:
    body = "const end = Date.now() + 300; while (Date.now() < end) {}"
    assert run(body, *ids(1), limits={"cpu_ms": 5000}).faults == []


def test_the_garbage_of_earlier_batches_is_not_held_against_a_script() -> None:
    body = "let all = []; for (let i = 0; i < 20_000; i++) all.push({i, text: 'x' + i})"
    script = Script("id BIGINT", inline=f"function processBatch(events) {{ {body} }}", limits=PATIENT)
    for _ in range(50):
        assert script(*ids(1)).faults == []


def test_a_script_that_takes_the_engine_down_is_refused_alone() -> None:
    script = Script(
        "id BIGINT",
        inline=f"function processBatch(events) {{ {when_three('Array.from({length: 3e7}, (_, i) => i)')} }}",
        limits=PATIENT,
    )
    assert script(*ids(3)).faults == [(0, "js_memory_limit")]
    assert script(*ids(1)).rows == ids(1)


def test_what_v8_does_not_interrupt_is_ended_from_outside() -> None:
    script = Script(
        "id BIGINT",
        inline=f"function processBatch(events) {{ {when_three('new Array(2 ** 26).fill(1)')} }}",
        limits={"cpu_ms": 100, "timeout_ms": 20_000, "mem_mb": 2048},
    )
    ran = script(*ids(3))
    assert ran.faults == [(0, "js_cpu_limit")]
    assert script(*ids(1)).rows == ids(1)


def engines() -> list[psutil.Process]:
    """The processes of V8 that this one has. It may have others, such as the JVM of Spark."""
    return [each for each in psutil.Process().children() if child.__file__ in each.cmdline()]


def test_an_engine_that_somebody_else_ends_is_started_again() -> None:
    script = Script("id BIGINT", inline="function processBatch(events) {}")
    assert script(*ids(1)).rows == ids(1)
    (engine,) = engines()
    engine.send_signal(signal.SIGKILL)
    assert script(*ids(2)).rows == ids(2)


def test_a_script_reaches_nothing() -> None:
    names = "fetch, process, require, Deno, XMLHttpRequest, WebSocket, Worker, setTimeout, WebAssembly"
    script = Script(
        "name STRING, kind STRING",
        inline="function processBatch(events) { for (const e of events) e.kind = typeof globalThis[e.name] }",
    )
    ran = script(*({"name": name.strip()} for name in names.split(",")))
    assert {row["kind"] for row in ran.rows} == {"undefined"}
    for action in ("require('fs')", "require('child_process')", "process.env"):
        assert run(action, *ids(1)).faults == [(0, "js_error")]
    assert run("return import('fs')", *ids(1)).faults == [(0, "js_async")]


def test_the_engine_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET", "42")
    script = Script("id BIGINT", inline="function processBatch(events) {}")
    script(*ids(1))
    (engine,) = engines()
    assert "PENSTOCK_SECRET" not in engine.environ()


def test_only_a_few_engines_are_kept() -> None:
    scripts = [
        Script("id BIGINT", inline=f"function processBatch(e) {{ /* {i} */ }}")
        for i in range(sandbox.KEPT + 1)
    ]
    for script in scripts:
        script(*ids(1))
    assert len(engines()) == sandbox.KEPT
    assert scripts[0](*ids(1)).rows == ids(1)


def test_an_engine_ends_with_the_process_that_uses_it() -> None:
    code = (
        "from tests.processors.scripts import Script, ids\n"
        "import psutil, sys, time\n"
        "Script('id BIGINT', inline='function processBatch(e) {}')(*ids(1))\n"
        "print(psutil.Process().children()[0].pid, flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        engine = psutil.Process(int(user.stdout.readline()))
        os.kill(user.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE
