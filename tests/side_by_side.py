"""How tests are shared among processes: what stays together, and what comes first.

`pytest -n` gives each process a unit of tests at a time. Fast tests come before slow ones. The units of slow
tests that take longest come first, so that no process is left alone with one of them at the end.
"""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

TOGETHER = ("tests/web/",)
"""Directories whose tests share one `penstock up`: in two processes there would be two."""

LONGEST = (
    "tests/crash/test_kill.py",
    "tests/web/",
    "tests/crash/",
    "tests/cluster/",
    "tests/storage/",
    "tests/oracle/test_nexmark.py",
    "tests/oracle/test_state.py",
    "tests/docs/test_clone.py",
    "tests/engine/test_sources_and_steps.py",
    "tests/oracle/",
    "tests/cli/",
    "tests/control/",
    "tests/engine/",
    "tests/connectors/",
    "tests/api/",
)
"""The slow tests that come first, the longest ones before others; those that are not named come last."""


ONCE = {
    "test_resumes_after_a_kill": ("TestKafkaSource", "TestPostgresCdcSource"),
    "test_survives_an_outage": ("TestKafkaSource", "TestNatsSink"),
    "test_pauses_under_backpressure": ("TestNatsSource",),
    "test_times_out": ("TestNatsSink",),
    "test_goes_on_after_a_stop": ("TestKafkaSource", "TestNatsSource", "TestStreamSource"),
}
"""Tests of the conformance suites that take long and show mostly what connectors share: `make test` runs
them on these connectors, `make nightly` on all."""


RARE = {"object_store", "hdfs", "iceberg_catalog"}
"""Servers that have to be built, or take long to start, for a few tests."""

BY_NIGHT = {
    "test_aggregates_are_compared_with_an_undisturbed_run",
    "test_kills_at_any_moment_lose_and_repeat_nothing",
    "test_a_flow_at_which_the_jvm_dies_fails_and_its_neighbour_goes_on",
    "test_pipelines_survive_a_kill[server]",
    "test_pipelines_survive_a_kill[worker]",
    "test_pipelines_survive_a_kill[jvm]",
    "test_streams_in_kafka_survive_a_kill",
    "test_the_same_on_postgresql_with_a_worker_that_wakes_up_too_late",
    "test_a_query_survives_kill_9[2]",
    "test_a_worker_whose_heap_is_filled_is_replaced",
    "test_nothing_is_lost_and_nothing_grows",
    "test_a_stream_moves_under_its_flows",
    "test_executors_without_the_python_that_they_should_have",
    "test_windows_keep_their_state_in_shared_storage",
    "test_generated_events_and_a_query_of_a_stream",
    "test_the_first_pipeline_of_the_readme_in_a_fresh_clone",
    "test_streams_scripts_tables_and_three_sinks",
    "test_lines_that_were_read_survive_a_kill",
    "test_a_reader_that_closes_the_pipe_ends_the_run[1]",
    "test_flows_of_a_lost_machine_go_on_at_another_one",
    "test_every_way_in_and_out",
    "test_ctrl_c_ends_a_drill_with_the_report_so_far",
    "test_the_processes_of_a_killed_drill_end",
    "test_a_page_outlives_a_killed_server",
    "test_a_running_server_survives_a_full_disk",
    "test_old_data_gives_the_same_windows_as_live_data[events of sessions]",
    "test_old_data_gives_the_same_windows_as_live_data[hopping]",
    "test_more_streams_than_descriptors",
    "test_processes_that_open_a_fresh_database_at_once[sqlite]",
    "test_random_transactions",
    "test_duplicates_over_five_hours",
    "test_sessions_take_all_events_that_are_not_late",
    *(
        f"test_a_flow_and_a_test_run_agree[{case}]"
        for case in (
            "stream-join, window",
            "strict file-dedupe, events of a window",
            "stream-dedupe, events of a window",
        )
    ),
    *(
        f"test_all_ways_give_what_the_oracle_says[{query}]"
        for query in ("q0", "q1", "q2", "q4", "q6", "q7", "q8", "q9", "q14", "q18", "q19", "q20")
    ),
}
"""Tests that keep all cores busy for minutes. Others show the same by day, with fewer kills or steps."""

BY_DAY = {"test_a_pipeline_to_an_object_store_and_back", "test_a_file_in_s3_is_never_replaced"}
"""Tests that `make test` runs all the same."""


def is_for_the_night(item: pytest.Item) -> bool:
    """Whether only `make nightly` runs a test."""
    if item.name in BY_NIGHT:
        return True
    if RARE & set(getattr(item, "fixturenames", ())):
        return item.name not in BY_DAY
    cls = getattr(item, "cls", None)
    chosen = ONCE.get(getattr(item, "originalname", item.name))
    if cls is None or chosen is None:
        return False
    # By name: to import the suites takes longer than most runs of a few tests.
    is_suite = any(base.__name__ in ("SourceSuite", "SinkSuite") for base in cls.__mro__)
    return is_suite and cls.__name__ not in chosen


def is_slow(item: pytest.Item) -> bool:
    """Whether a test is marked `slow`."""
    return item.get_closest_marker("slow") is not None


def unit_of(nodeid: str) -> str:
    """The tests that run in one process, one after another: those of a file, or of a directory."""
    file = nodeid.partition("::")[0]
    return next((directory for directory in TOGETHER if file.startswith(directory)), file)


def arrange(items: list[pytest.Item]) -> None:
    """Put tests in the order in which they are handed out. Those of a file keep their order."""

    def rank(item: pytest.Item) -> tuple[bool, int]:
        if not is_slow(item):
            return False, 0
        places = (place for place, path in enumerate(LONGEST) if item.nodeid.startswith(path))
        return True, next(places, len(LONGEST))

    items.sort(key=rank)


class Stages:
    """Writes a line where the slow tests begin, of a run that has both."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._fast, self._slow = 0, 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "setup":
            return
        if "slow" not in report.keywords:
            self._fast += 1
            return
        self._slow += 1
        if self._slow == 1 and self._fast:
            self._terminal.write("\n")
            self._terminal.section(
                f"{time.strftime('%H:%M:%S')} slow tests, after {self._fast} fast ones", "-"
            )


class Units(LoadScopeScheduling):
    """Hands out tests in units: the fast tests of a file are one, its slow tests another."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._units: dict[str, str] = {}

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process its next unit with the last test of the one before it, not earlier.

        A process holds its last test back until it knows what follows. To be given more than that, behind a
        test that takes minutes, would keep it from a process that has nothing to do.
        """
        if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        if not self._units:
            self._number(self.collection or [])
        return self._units[nodeid]

    def _number(self, nodeids: list[str]) -> None:
        """A unit is a run of neighbours: `arrange` has put the slow tests of a file behind all fast ones."""
        number = 0
        for before, nodeid in pairwise(["", *nodeids]):
            number += unit_of(before) != unit_of(nodeid)
            self._units[nodeid] = f"{number} {unit_of(nodeid)}"
