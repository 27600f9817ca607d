"""The conformance suite of sinks: subclass `SinkSuite` and add the fixture `system`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter
from penstock.engine.plan.flow import Flow
from penstock.errors import Fatal
from penstock.frames.site import Site
from penstock.specs.catalog import catalog
from penstock.testing.flows import Bench, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT, KEYS = 1000, 3

SOURCE = {
    "type": "generate",
    "count": COUNT,
    "row": {"id": "seq", "name": "concat('event ', seq)", "_key": f"concat('k', seq % {KEYS})"},
}
"""Events with the columns `id BIGINT`, `name STRING` and `_key STRING`."""

SMALL = {"max_events": 250, "max_inflight": 1}


class SinkSystem(ABC):
    """A new and empty place in a real system, and the capabilities of its sink."""

    keyed = False
    """Whether the order of events with the same key can be seen in the system."""
    outage_s = 0.0
    """Seconds of an outage in which a sink fails at least once. 0: `stop` is not implemented."""

    @abstractmethod
    def spec(self, **fields: Any) -> dict[str, Any]:
        """The sink that writes to the place, with additional fields."""

    @abstractmethod
    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        """The events in the place, each with its `id`; events with the same key are in order."""

    def bad(self) -> tuple[dict[str, str], str] | None:
        """Columns, as SQL over `seq`, of an event that the sink rejects, and the code of its dead letter."""
        return None

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        """Sinks that cannot work, by the name of the fault: the sink, and the code of the error."""
        return {}

    def stop(self) -> None:
        """Begin an outage."""
        raise NotImplementedError

    def start(self) -> None:
        """End the outage."""
        raise NotImplementedError


class SinkSuite:
    """Every sink passes these tests against its real system. Needs the fixtures `spark` and `system`."""

    @pytest.fixture
    def bench(self, spark: SparkSession, tmp_path: Path) -> Bench:
        """The bench that runs the flows of a test."""
        return Bench(spark, tmp_path)

    def test_delivers_all_in_order(self, bench: Bench, system: SinkSystem) -> None:
        """Each event is delivered once, and events with the same key are in order."""
        state = bench.run(SOURCE, system.spec(), batch=SMALL)
        assert state.outcome == "completed", state.error
        found = [event["id"] for event in system.received(bench)]
        assert sorted(found) == list(range(COUNT))
        if system.keyed:
            for key in range(KEYS):
                of_key = [number for number in found if number % KEYS == key]
                assert of_key == sorted(of_key)

    def test_beside_another_sink(self, bench: Bench, system: SinkSystem) -> None:
        """Several sinks read events that Spark has cached; a single sink may get them as a table."""
        sinks = [system.spec(), {"id": "other", "type": "drop"}]
        state = bench.run({**SOURCE, "count": 20}, system.spec(), sinks=sinks)
        assert state.outcome == "completed", state.error
        assert sorted(event["id"] for event in system.received(bench)) == list(range(20))

    def test_a_repeated_batch_meets_the_guarantee(self, bench: Bench, system: SinkSystem) -> None:
        """A batch that was written, and whose acknowledgement was lost in a crash, is repeated."""
        kept = bench.keeper(SOURCE, system.spec(), losing, batch=SMALL, restart={"policy": "never"})
        kept.start()
        kept.join(120)
        assert kept.state.outcome == "failed", kept.state
        assert system.received(bench), "the batch was not written before the crash"
        state = bench.run(SOURCE, system.spec(), batch=SMALL)
        assert state.outcome == "completed", state.error
        counts = Counter(event["id"] for event in system.received(bench))
        assert set(counts) == set(range(COUNT)), "events were lost"
        cls: Any = catalog("sink").classes[system.spec()["type"]]
        if cls.guarantee == "exactly-once":
            assert set(counts.values()) == {1}, "events were repeated"

    def test_a_bad_event_is_a_letter(self, bench: Bench, system: SinkSystem) -> None:
        """An event that the system cannot accept goes to the dead letters; the others are delivered."""
        if (bad := system.bad()) is None:
            pytest.skip("the sink takes all events")
        columns, code = bad
        source = {**SOURCE, "count": 10, "row": {**SOURCE["row"], **columns}}  # type: ignore[dict-item]
        state = bench.run(source, system.spec())
        assert state.outcome == "completed", state.error
        letters = bench.letters()
        assert {letter["code"] for letter in letters} == {code}
        assert len(letters) + len(system.received(bench)) == 10

    def test_survives_an_outage(self, bench: Bench, system: SinkSystem) -> None:
        """A sink whose system is down retries, with pauses, until all events are delivered."""
        if not system.outage_s:
            pytest.skip("the system cannot be stopped")
        system.stop()
        started = False
        try:
            effort = {"retries": 100, "backoff_ms": 200, "deadline_ms": 120_000}
            kept = bench.keeper({**SOURCE, "count": 100}, system.spec(**effort))
            kept.start()
            wait_until("a failure", lambda: _failures(kept.state.ops), system.outage_s)
            system.start()
            started = True
            kept.join(120)
        finally:
            if not started:
                system.start()
        assert kept.state.outcome == "completed", kept.state
        assert {event["id"] for event in system.received(bench)} == set(range(100))

    def test_times_out(self, bench: Bench, system: SinkSystem) -> None:
        """A batch that is not acknowledged in time counts as not delivered, and the error is reported."""
        if not system.outage_s:
            pytest.skip("the system cannot be stopped")
        system.stop()
        try:
            began = time.monotonic()
            spec = system.spec(deadline_ms=2000, retries=0)
            state = bench.run({**SOURCE, "count": 10}, spec, restart={"policy": "never"})
            assert time.monotonic() - began < 60
        finally:
            system.start()
        assert state.outcome == "failed"
        assert (state.error or {})["message"]

    def test_errors_are_clear(self, bench: Bench, system: SinkSystem) -> None:
        """A sink that cannot work reports the reason: a code, a path, a hint and no Java class names."""
        if not system.wrong():
            pytest.skip("the sink can hardly be wrong")
        for name, (sink, code) in system.wrong().items():
            part = bench.part(name)
            once = {**sink, "retries": 0}
            error = part.run({**SOURCE, "count": 10}, once, restart={"policy": "never"}).error or {}
            assert error.get("code") == code, f"{name}: {error}"
            assert (error["path"] or "").startswith("spec.sinks[0]"), f"{name}: {error}"
            assert error["hint"], f"{name}: {error}"
            assert "Exception" not in error["message"], f"{name}: {error}"


class _Losing(SinkWriter):
    """A writer whose process dies after the first batch is written, but before it is acknowledged."""

    def __init__(self, inner: SinkWriter) -> None:
        self.inner = inner

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        delivered = self.inner.write(events, delivery)
        list(delivered.rejected)
        raise Fatal("the process dies")

    def cancel(self) -> None:
        self.inner.cancel()

    def close(self) -> None:
        self.inner.close()


def losing(flow: Flow) -> Flow:
    """The flow with a sink that loses its acknowledgement."""
    (part,) = flow.sinks
    inner = part.component

    class LosingSink(type(inner)):  # type: ignore[misc]
        def open(self, site: Site) -> SinkWriter:
            return _Losing(super().open(site))

    sink: Sink = LosingSink.model_construct(**{n: getattr(inner, n) for n in type(inner).model_fields})
    return replace(flow, sinks=[replace(part, component=sink)])


def _failures(ops: Mapping[str, Any]) -> int:
    return sum(int(sink["failures"]) for sink in ops.get("sinks", {}).values())
