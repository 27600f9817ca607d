"""The conformance suite of sources: subclass `SourceSuite` and add the fixture `system`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.spark.java_classes import CACHE
from penstock.specs.catalog import catalog
from penstock.testing.flows import Bench, files, to_files, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.control.fleet.lifecycle import Keeper

Events = Sequence[Mapping[str, Any]]

SOME = [{"id": number, "name": f"event {number}"} for number in range(300)]


class SourceSystem(ABC):
    """A new and empty place in a real system, and the capabilities of its source.

    Events have the columns `id BIGINT` and `name STRING`, at least after `processors`.
    """

    processors: Sequence[Mapping[str, Any]] = ()
    """Steps that create such events, if the source has other columns."""
    killable = True
    """Whether another process can read the place too, so that the suite can kill that process."""
    keyed = False
    """Whether an event has a key and headers."""
    lag = False
    """Whether the source reports its lag."""
    repeats = False
    """Whether events may be repeated after a failure, since the system has no positions to return to."""
    transactional = False
    """Whether each `put` is a transaction of the system, which the source does not split."""
    outage_s = 0.0
    """Seconds of an outage: longer than the client's own timeout. 0: `stop` is not implemented."""

    @abstractmethod
    def spec(self, **fields: Any) -> dict[str, Any]:
        """The source that reads the place without an end, with additional fields."""

    @abstractmethod
    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Add events."""

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        """Positions in a place with `SOME`, by name: the position, and the number of events after it."""
        return {}

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        """Sources that cannot work, by the name of the fault: the source, and the code of the error."""
        return {}

    def stop(self) -> None:
        """Begin an outage."""
        raise NotImplementedError

    def start(self) -> None:
        """End the outage."""
        raise NotImplementedError


def ids(found: Events) -> list[int]:
    """The ids of events, sorted."""
    return sorted(event["id"] for event in found)


class Found:
    """The events that a flow has written to files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def ids(self) -> list[int]:
        """The ids of the events, sorted."""
        return ids(files(self.directory))

    def has(self, number: int) -> bool:
        """Whether there is an event with this id."""
        return number in self.ids()


def has_events(directory: Path, count: int, child: subprocess.Popen[bytes] | None = None) -> bool:
    """Whether a directory has `count` different events, or the process that writes them has ended."""
    return len(set(ids(files(directory)))) >= count or (child is not None and child.poll() is not None)


def has_started(kept: Keeper) -> bool:
    """Whether a flow is ready, or has ended."""
    return kept.state.ready or kept.ended


class SourceSuite:
    """Every source passes these tests against its real system. Needs the fixtures `spark` and `system`."""

    @pytest.fixture
    def bench(self, spark: SparkSession, tmp_path: Path) -> Bench:
        """The bench that runs the flows of a test."""
        return Bench(spark, tmp_path)

    @pytest.fixture(autouse=True)
    def steps(self, bench: Bench, system: SourceSystem) -> None:
        """Each flow of the test begins with the steps of the system."""
        bench.processors = system.processors

    def test_reads_all(self, bench: Bench, system: SourceSystem) -> None:
        """Each event is read once, with its values, whether it was added before or after the start."""
        system.put(SOME[:200])
        out = bench.root / "out"
        with bench.running(system.spec(), to_files(out)) as kept:
            wait_until("the events before the start", lambda: len(files(out)) >= 200)
            system.put(SOME[200:])
            wait_until("the events after the start", lambda: len(files(out)) >= len(SOME))
            if system.lag:
                wait_until("no lag", lambda: kept.state.ops.get("lag_events") == 0)
        assert sorted(files(out), key=lambda event: event["id"]) == SOME

    def test_goes_on_after_a_stop(self, bench: Bench, system: SourceSystem) -> None:
        """A drained flow ends within seconds, and resumes where it stopped."""
        out = bench.root / "out"
        for first in (0, 100, 200):
            system.put(SOME[first : first + 100])
            with bench.running(system.spec(), to_files(out)):
                wait_until("the events", partial(has_events, out, first + 100))
        assert ids(files(out)) == ids(SOME)

    def test_positions(self, bench: Bench, system: SourceSystem) -> None:
        """A source begins at its position."""
        system.put(SOME)
        positions = system.positions()
        if not positions:
            pytest.skip("the source has no positions")
        for number, (name, (position, count)) in enumerate(positions.items()):
            part = bench.part(name)
            found, late = Found(part.root / "out"), len(SOME) + number
            with part.running(system.spec(position=position), to_files(found.directory)) as kept:
                wait_until("the start", partial(has_started, kept))
                system.put([{"id": late, "name": "late"}])
                wait_until(f"{name}: the last event", partial(found.has, late))
            numbers = [number for number in found.ids() if number < len(SOME)]
            assert numbers == ids(SOME)[len(SOME) - count :], name

    def test_keeps_key_and_headers(self, bench: Bench, system: SourceSystem) -> None:
        """The key and the headers of an event are passed to a sink that supports them."""
        if not system.keyed:
            pytest.skip("events have no key and no headers")
        system.put(SOME[:1], key="k", headers={"h": "x"})
        assert bench.stream("copy") == []
        with bench.running(system.spec(), {"type": "stream", "stream": "copy"}):
            wait_until("the event", lambda: bench.stream("copy"))
        (event,) = bench.stream("copy")
        assert json.loads(event["value"]) == SOME[0]
        assert (event["_key"], dict(event["_headers"])) == (b"k", {"h": "x"})

    def test_survives_an_outage(self, bench: Bench, system: SourceSystem) -> None:
        """After an outage that is longer than the client's timeout, all events are read, each once."""
        if not system.outage_s:
            pytest.skip("the system cannot be stopped")
        out = bench.root / "out"
        system.put(SOME[:100])
        restart = {"max_attempts": 100, "backoff_ms": 200, "max_backoff_ms": 1000}
        with bench.running(system.spec(), to_files(out), restart=restart) as kept:
            wait_until("the events before", lambda: len(files(out)) >= 100)
            system.stop()
            try:
                wait_until("the failure", lambda: kept.state.error is not None, system.outage_s)
            finally:
                system.start()
            system.put(SOME[100:])
            wait_until("the events after", partial(has_events, out, len(SOME)))
        assert _counted(system, files(out)) == ids(SOME)

    def test_pauses_under_backpressure(self, bench: Bench, system: SourceSystem) -> None:
        """If the source has an input stream, it waits while the stream is full, and loses nothing."""
        if not catalog("source").classes[system.spec()["type"]].held:  # type: ignore[attr-defined]
            pytest.skip("Spark reads the source itself, as many events as a micro-batch may have")
        out = bench.root / "out"
        slow = {"processors": [{"type": "throttle", "rate": 100}], "batch": {"max_events": 10}}
        with bench.running(system.spec(), to_files(out), buffer={"limit": 40}, **slow) as kept:
            receiver = partial(_state_of_receiver, kept)
            wait_until("the start", partial(has_started, kept))
            for first in range(0, len(SOME), 20):
                system.put(SOME[first : first + 20])
                time.sleep(0.05)  # or a source may add all of them at once, which an empty stream allows
            wait_until("the source waits", lambda: receiver() == "waiting")
            wait_until("all events", lambda: len(files(out)) >= len(SOME))
        assert ids(files(out)) == ids(SOME)

    def test_keeps_transactions_whole(self, bench: Bench, system: SourceSystem) -> None:
        """The events of a transaction are never in two batches."""
        if not system.transactional:
            pytest.skip("the system has no transactions")
        sizes, first = (5, 40, 1, 23, 31), 0
        for size in sizes:
            system.put(SOME[first : first + size])
            first += size
        out = bench.root / "out"
        with bench.running(system.spec(), to_files(out), batch={"max_events": 10, "max_inflight": 1}):
            wait_until("the events", lambda: len(files(out)) >= first)
        assert ids(files(out)) == list(range(first))
        ends = {sum(sizes[: number + 1]) for number in range(len(sizes))}
        for batch in sorted(out.glob("penstock_batch=*")):
            assert ids(files(batch))[-1] + 1 in ends, f"{batch.name} ends within a transaction"

    def test_errors_are_clear(self, bench: Bench, system: SourceSystem) -> None:
        """A source that cannot work reports the reason: a code, a path, a hint and no Java class names."""
        if not system.wrong():
            pytest.skip("the source can hardly be wrong")
        for name, (source, code) in system.wrong().items():
            part = bench.part(name)
            error = part.run(source, {"type": "drop"}, restart={"policy": "never"}).error or {}
            assert error.get("code") == code, f"{name}: {error}"
            assert (error["path"] or "").startswith("spec.source"), f"{name}: {error}"
            assert error["hint"], f"{name}: {error}"
            assert "Exception" not in error["message"], f"{name}: {error}"

    @pytest.mark.slow
    def test_resumes_after_a_kill(self, bench: Bench, system: SourceSystem, tmp_path: Path) -> None:
        """A killed process loses no events, and repeats none to an exactly-once sink."""
        if not system.killable:
            pytest.skip("no other process can read it")
        out, document = tmp_path / "out", tmp_path / "suite.json"
        spec = {
            "source": system.spec(),
            "processors": [dict(step) for step in system.processors],
            "sinks": [to_files(out)],
            "batch": {"max_events": 20, "max_inflight": 1},
        }
        document.write_text(json.dumps({"kind": "Pipeline", "metadata": {"name": "suite"}, "spec": spec}))
        system.put(SOME[:100])
        for count in (20, len(SOME)):
            child = _penstock_run(document, tmp_path, bench.spark.conf.get(CACHE, "") or "")
            if count == len(SOME):
                system.put(SOME[100:])
            try:
                wait_until("events in files", partial(has_events, out, count, child))
            finally:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        assert _counted(system, files(out)) == ids(SOME), (tmp_path / "run.log").read_text()[-2000:]


def _counted(system: SourceSystem, found: Events) -> list[int]:
    """The ids of events after a failure, each once if the system may repeat them."""
    return sorted(set(ids(found))) if system.repeats else ids(found)


def _state_of_receiver(kept: Keeper) -> str | None:
    state: str | None = (kept.state.ops.get("receiver") or {}).get("state")
    return state


def _penstock_run(document: Path, work: Path, cache: str) -> subprocess.Popen[bytes]:
    """Run a document in another process, with the jars of this process."""
    command = [sys.executable, "-m", "penstock.cli.main", "run", str(document), "--home", str(work / "home")]
    env = os.environ | {"PENSTOCK_CACHE": cache}
    with (work / "run.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=work, env=env)
