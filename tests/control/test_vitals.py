from __future__ import annotations

import subprocess
import sys
import time

from penstock.control.monitor.process_usage import Vitals

BUSY = "x = bytearray(1024 * 1024 * 1024)\nprint('ready', flush=True)\nwhile True: pass"


def test_children_count_too() -> None:
    vitals = Vitals(every_s=0)
    alone = vitals.read()
    assert alone["cpu_percent"] is None  # since when, nobody knows
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        vitals.read()
        time.sleep(0.3)
        both = vitals.read()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    # Other children of the tests, such as Spark, may have ended or shrunk meanwhile.
    assert both["memory_bytes"] > alone["memory_bytes"] + 512 * 1024 * 1024  # type: ignore[operator]
    assert both["cpu_percent"] > 0  # type: ignore[operator]
    vitals.read()
    assert vitals.read()["cpu_percent"] >= 0  # type: ignore[operator]


def test_it_does_not_look_all_the_time() -> None:
    vitals = Vitals(every_s=60)
    assert vitals.read() is vitals.read()
