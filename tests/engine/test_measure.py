from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.engine.measure.advice import bottleneck
from penstock.engine.measure.comparison import Comparison, compare
from penstock.engine.measure.figures import Balance, Figures, balance_of, stage_of, steps_of


def step(taken: int, given: int, errors: int = 0, dropped: int = 0, ms: float | None = None) -> Any:
    return {
        "in": taken, "out": given, "errors": errors, "dropped": dropped, "ms": ms or 0.0, "shared": ms is None
    }  # fmt: skip


def ops(events: int, out: int, letters: int = 0, **steps: Any) -> dict[str, Any]:
    sinks = {"shadow": {"events": out}}
    return {"input_events": events, "dead_letters": letters, "processors": steps, "sinks": sinks}


def figures(seconds: float = 1.0, **changes: Any) -> Figures:
    stages = [stage_of("walCommit", [10.0]), stage_of("compute", [900.0]), stage_of("deliver", [90.0])]
    balance = Balance(1000, 0, 1000, 0, 0, 0, 0)
    return replace(Figures(seconds, 1000, 1000, 1, 0.3, 0.2, stages, [], balance), **changes)


def test_a_filter_and_letters_add_up() -> None:
    found = ops(100, 60, 5, large=step(98, 63, dropped=35), script=step(63, 60, errors=3, ms=12.0))
    steps = steps_of(found, {"large": False, "script": False})
    assert [s.ms for s in steps] == [None, 12.0]
    # Two letters are of the source: the first step got 98 of 100.
    balance = balance_of(found, steps, routed=False)
    assert (balance.dropped, balance.letters, balance.missing) == (35, 5, 0)


def test_a_window_folds_events_and_makes_others() -> None:
    found = ops(100, 4, minutes=step(100, 4, dropped=10))
    balance = balance_of(found, steps_of(found, {"minutes": True}), routed=False)
    assert (balance.late, balance.folded, balance.made, balance.missing) == (10, 90, 4, 0)


def test_a_step_that_makes_more_events() -> None:
    found = ops(10, 25, lines=step(10, 25))
    balance = balance_of(found, steps_of(found, {"lines": False}), routed=False)
    assert (balance.made, balance.missing) == (15, 0)


def test_lost_events_are_found() -> None:
    found = ops(100, 99, all=step(100, 100))
    balance = balance_of(found, steps_of(found, {"all": False}), routed=False)
    run = figures(balance=balance, events=100, counted=101)
    assert run.mismatches() == [
        "the input has 101 events, but the engine read 100",
        "1 of 100 events are not accounted for",
    ]
    assert figures().mismatches() == figures(counted=None).mismatches() == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, "computing in Spark"),
        ({"stages": [stage_of("walCommit", [80.0, 90.0]), stage_of("compute", [5.0])]}, "fixed cost"),
        ({"balance": Balance(1000, 0, 900, 100, 0, 0, 0)}, "10% of the events are dead letters"),
        ({"stages": [stage_of("compute", [5.0]), stage_of("deliver", [50.0])]}, "the delivery"),
        ({"steps": steps_of(ops(1, 1, js=step(1000, 1000, ms=800)), {"js": False})}, "the step 'js'"),
    ],
)
def test_the_bottleneck(changes: dict[str, Any], what: str) -> None:
    found = bottleneck(figures(**changes), 10_000)
    assert what in found.what
    assert found.advice


def test_a_difference_has_to_be_larger_than_the_noise() -> None:
    noisy = [figures(1.0), figures(1.2)]
    assert Comparison(noisy, noisy, [figures(1.05)]).verdict == "no significant difference"
    assert Comparison(noisy, noisy, [figures(0.5)]).verdict == "faster"
    assert Comparison(noisy, noisy, [figures(2.0)]).verdict == "slower"


def test_versions_take_turns() -> None:
    order: list[str] = []

    def run(name: str) -> Figures:
        order.append(name)
        return figures()

    found = compare(lambda: run("a"), lambda: run("b"), rounds=2)
    assert order == ["a", "b", "a"] * 2
    assert (found.ratio, found.noise) == (1.0, 1.0)


def test_events_of_a_schema() -> None:
    from penstock.engine.measure.events import generated
    from penstock.streams.schema import arrow_schema

    schema = arrow_schema(
        "a BIGINT NOT NULL, b STRING, c DOUBLE, d TIMESTAMP, e BOOLEAN, f DATE, g DECIMAL(10,2), "
        "h TINYINT, i BINARY, j TIMESTAMP_NTZ, k ARRAY<INT>"
    )
    batch = generated(schema, 1000, 300)
    assert batch.schema == schema
    assert batch.column("a").to_pylist() == list(range(1000, 1300))
    nulls = {name: batch.column(name).null_count for name in schema.names}
    assert {name for name, count in nulls.items() if count} == {"k"}
