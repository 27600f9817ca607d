"""Which edits a checkpoint survives. What the API makes of it is in tests/api/test_edits.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.edit_effects import plan_edit
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import plan_run
from penstock.engine.runtime.checkpoints import KEY, memory_of, position_of
from tests.flows import Streams, flow_of, pipeline

FILTER = {"id": "f", "type": "filter", "where": "id > 0"}


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    made = Streams(tmp_path)
    made.make("s", schema="id BIGINT, at TIMESTAMP, v DOUBLE, note STRING")
    return made


def flow(streams: Streams, *steps: dict[str, Any], **spec: Any) -> Flow:
    source = {"type": "stream", "stream": "s"}
    return flow_of(pipeline(**{"source": source, "processors": list(steps), **spec}), streams.site())


def window(**changes: Any) -> dict[str, Any]:
    whole = {"id": "w", "type": "window", "time": "at", "size": "1m", "aggregates": {"total": "sum(v)"}}
    return {**whole, **changes}


def mapped(v: str) -> dict[str, Any]:
    return {"id": "m", "type": "sql", "query": f"SELECT id, at, {v} AS v, note FROM input"}


def effects(old: Flow, new: Flow, **more: Any) -> dict[str, str]:
    return {step.id: step.effect for step in plan_edit(old, new, **more).steps if step.part != "policy"}


def test_without_memory_a_checkpoint_is_called_as_before(streams: Streams) -> None:
    plain = flow(streams, FILTER)
    assert memory_of(plain, None).key == plain.position_key
    key = memory_of(flow(streams, window()), None).key
    assert KEY.fullmatch(key)
    assert (key != plain.position_key, position_of(key)) == (True, plain.position_key)


def test_types_that_are_kept_are_part_of_the_memory(spark: SparkSession, streams: Streams) -> None:
    def key(*steps: dict[str, Any], **spec: Any) -> str:
        made = flow(streams, *steps, **spec)
        return memory_of(made, lambda: plan_run(made, spark).output).key

    kept = key(mapped("v"), window())
    assert kept == key(window()), "a step that changes no type"
    assert kept == key(FILTER, window(id="other", allowed_lateness="5s")), "names and lateness are not kept"
    assert kept == key({"type": "drop_fields", "fields": ["note"]}, window()), "nor are columns not used"
    assert kept == key(window(), {"type": "filter", "where": "total > 1"}), "nor is what comes after"
    others = [
        key(mapped("CAST(v AS DECIMAL(10, 2))"), window()),
        key(window(size="2m")),
        key(window(aggregates={"total": "max(v)"})),
        key(window(keys=["note"])),
        key(window(), {**window(id="x", time="window_end", size="1h"), "aggregates": {"n": "count(*)"}}),
    ]
    assert len({kept, *others}) == 6

    old, new = flow(streams, mapped("v"), window()), flow(streams, mapped("CAST(v AS BIGINT)"), window())
    plan = plan_edit(old, new, spark)
    assert {step.id: step.effect for step in plan.steps[:3]} == {
        "source": "restarts",
        "m": "restarts",
        "w": "resets",
    }
    assert "types" in plan.steps[2].why
    assert effects(old, new) == {"source": "keeps", "m": "restarts", "w": "keeps", "drop": "keeps"}, (
        "without Spark they are not known"
    )


def test_the_order_of_steps(streams: Streams) -> None:
    second = {**FILTER, "id": "g", "where": "id > 1"}
    old, new = flow(streams, FILTER, second), flow(streams, second, FILTER)
    assert effects(old, new) == {"source": "keeps", "f": "restarts", "g": "restarts", "drop": "keeps"}
    assert set(effects(old, old).values()) == {"keeps"}


def test_policies_and_sinks_only_restart(streams: Streams) -> None:
    sinks = [{"type": "drop", "retries": 9}, {"id": "two", "type": "drop"}]
    changed = flow(streams, window(), sinks=sinks, batch={"max_ms": 5}, commit_policy={"mode": "all"})
    plan = plan_edit(flow(streams, window()), changed)
    assert {step.id: step.effect for step in plan.steps} == {
        "source": "keeps",
        "w": "keeps",
        "drop": "restarts",
        "two": "restarts",
        "batch": "restarts",
        "commit_policy": "restarts",
        "restart": "keeps",
    }
    assert not plan.resets


def test_a_source_without_a_cursor_loses_its_place_with_the_memory(streams: Streams) -> None:
    row = {"at": "time", "v": "rand()"}
    source = {"type": "generate", "rate": 1, "row": row}
    old, new = flow(streams, window(), source=source), flow(streams, source=source)
    assert effects(old, new) == {"source": "resets", "w": "resets", "drop": "keeps"}
    assert effects(new, old) == {"source": "resets", "w": "restarts", "drop": "keeps"}, "nothing to forget"
    assert effects(old, new, checkpoints=[]) == {"source": "keeps", "w": "restarts", "drop": "keeps"}


def test_a_latency_goal_takes_effect_with_a_restart(streams: Streams) -> None:
    steps = plan_edit(flow(streams), flow(streams, latency="200ms")).steps
    (batch,) = [step for step in steps if step.id == "batch"]
    assert (batch.effect, batch.path) == ("restarts", "spec.latency")
