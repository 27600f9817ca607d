"""One measured run of a flow, by the same code that a worker uses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.measure.events import Input
from penstock.engine.measure.figures import STAGES, Figures, Stage, balance_of, stage_of, steps_of
from penstock.engine.measure.places import forget
from penstock.engine.measure.shadow import BatchClock, shadowed
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import plan_run
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.run import Run
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 0.1

Progress = Callable[[int], None]
"""Called with the number of events that were read so far."""


class Interrupted(PenstockError):
    """The measurement was stopped by the user."""

    def __init__(self) -> None:
        super().__init__(Problem(code="interrupted", message="stopped: nothing was kept of the run"))


def measure(
    flow: Flow,
    given: Input,
    spark: SparkSession,
    directory: Path,
    stop: threading.Event,
    progress: Progress = lambda _: None,
    limit: int | None = None,
) -> Figures:
    """Run a flow over the input, or its first `limit` events, into shadow sinks.

    Raises the error of a failed run, and leaves no cursor in the streams that it reads.
    """
    clock = BatchClock()
    flow = replace(
        flow,
        source=replace(flow.source, component=given.source(limit)),
        sinks=[shadowed(sink, clock) for sink in flow.sinks],
    )
    plan = plan_run(flow, spark)
    counters = _Timings({sink.id: sink.component.guarantee for sink in flow.sinks})
    run = Run(plan, str(directory / "checkpoint"), counters, on_batch=clock.batch)
    used, began = _cpu_s(), time.perf_counter()
    try:
        run.start()
        try:
            while not run.observe():
                progress(counters.snapshot()["input_events"])
                if stop.wait(LOOK_S):
                    run.stop()
                    raise Interrupted
            seconds = time.perf_counter() - began
            if run.failure is not None:
                raise PenstockError(run.failure.problem)
        finally:
            run.close()
    finally:
        forget(flow)
    jvm, python = (now - before for now, before in zip(_cpu_s(), used, strict=True))
    ops = counters.snapshot()
    steps = steps_of(ops, {part.id: part.component.folds for part in flow.processors})
    routed = any(part.component.routes for part in flow.processors) or any(s.when for s in flow.sinks)
    counted = given.events if limit is None or given.events is None else min(limit, given.events)
    return Figures(
        seconds,
        ops["input_events"],
        counted,
        ops["batches"],
        jvm,
        python,
        _stages(counters.durations, clock),
        steps,
        balance_of(ops, steps, routed=routed),
    )


class _Timings(Counters):
    """Counters that also record the durations of each micro-batch's stages."""

    def __init__(self, sinks: Mapping[str, str]) -> None:
        super().__init__(sinks)
        self.durations: list[dict[str, float]] = []

    def progressed(self, progress: Mapping[str, Any], behind: int | None = None) -> None:
        super().progressed(progress, behind)
        if "addBatch" in progress.get("durationMs", {}):
            self.durations.append(dict(progress["durationMs"]))


def _stages(durations: list[dict[str, float]], clock: BatchClock) -> list[Stage]:
    """Spark's stages of a micro-batch, with `addBatch` divided into computing and delivering."""
    inner = sum(clock.compute_s) + sum(clock.deliver_s)
    taken: dict[str, list[float]] = {name: [] for name in STAGES}
    for each in durations:
        whole = each.get("triggerExecution", 0)
        known = sum(ms for name, ms in each.items() if name != "triggerExecution")
        for name in STAGES:
            if name in each:
                taken[name].append(each[name])
        taken["other"].append(max(0.0, whole - known))
    taken["compute"] = [s * 1000 for s in clock.compute_s]
    taken["deliver"] = [s * 1000 for s in clock.deliver_s]
    outside = sum(each["addBatch"] for each in durations) - inner * 1000
    if durations and outside > 0:  # calling Python, and syncing the checkpoint
        taken["other"] = [ms + outside / len(durations) for ms in taken["other"]]
    return [stage_of(name, ms) for name, ms in taken.items() if ms]


def _cpu_s() -> tuple[float, float]:
    """Processor time of the JVM, and of this process and its Python processes, ended ones included."""
    import psutil

    jvm = python = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            times, name = process.cpu_times(), process.name()
        except psutil.Error:  # it has just ended, and its parent includes its time
            continue
        ended = times.children_user + times.children_system
        if name.startswith("java"):
            jvm += times.user + times.system
        else:
            python += times.user + times.system
        python += ended
    return jvm, python
