"""A drill that is killed leaves no process behind."""

from __future__ import annotations

import psutil
import pytest

from tests.cli.commands import Penstock, wait_for

END_S = 60
"""On a busy machine the processes are still being loaded when they notice the end of the drill."""


@pytest.mark.slow
def test_the_processes_of_a_killed_drill_end(penstock: Penstock) -> None:
    drill = penstock.start("drill", "--workers", "2", "--pipelines", "1", "--dir", "drill")
    parent, made = psutil.Process(drill.pid), dict[int, psutil.Process]()

    def started() -> bool:
        made.update({each.pid: each for each in parent.children(recursive=True)})
        return sum("worker" in each.cmdline() for each in made.values() if each.is_running()) >= 2

    wait_for("the server and the workers", started)
    drill.kill()
    drill.wait()
    _, left = psutil.wait_procs(list(made.values()), timeout=END_S)
    assert [each.cmdline() for each in left] == []
