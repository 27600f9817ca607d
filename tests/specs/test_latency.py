"""The latency goal in documents: what it may be combined with."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.errors import Invalid, Problem
from penstock.specs.policies import Batch, PacedBatch, batching
from penstock.specs.validation import parse, with_defaults

STREAM = {"type": "stream", "stream": "orders"}


def pipeline(**spec: Any) -> dict[str, Any]:
    whole = {"source": STREAM, "sinks": [{"type": "drop"}], "latency": "200ms", **spec}
    return {"kind": "Pipeline", "metadata": {"name": "p"}, "spec": whole}


def problems(raw: dict[str, Any]) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        parse(raw)
    return caught.value.problems


@pytest.mark.parametrize("source", [STREAM, {"type": "http"}, {"ref": "shop"}])
def test_streams_and_pushed_events_can_have_one(source: dict[str, Any]) -> None:
    assert parse(pipeline(source=source)).spec.latency == "200ms"  # type: ignore[attr-defined]


def test_tasks_and_sinks_that_run_by_themselves_can_have_one() -> None:
    task = {"input": "a", "outputs": [{"stream": "b"}], "processors": [{"type": "sample", "rate": 1.0}]}
    sink = {"type": "drop", "stream": "a"}
    for kind, spec in (("Task", task), ("Sink", sink)):
        raw: dict[str, Any] = {"kind": kind, "metadata": {"name": "x"}, "spec": {**spec, "latency": "1s"}}
        assert parse(raw).spec.latency == "1s"  # type: ignore[attr-defined]
        alone = {name: value for name, value in raw["spec"].items() if name not in ("outputs", "stream")}
        (problem,) = problems({**raw, "spec": alone})
        assert (problem.code, problem.path) == ("latency_unavailable", "spec.latency")
        assert "runs on its own" in problem.message


@pytest.mark.parametrize("latency", ["0ms", "fast", 200])
def test_it_is_a_duration_of_more_than_zero(latency: Any) -> None:
    (problem,) = problems(pipeline(latency=latency))
    assert problem.path == "spec.latency"


@pytest.mark.parametrize("threshold", ["max_events", "max_bytes", "max_ms", "max_inflight"])
def test_it_stands_in_place_of_thresholds(threshold: str) -> None:
    (problem,) = problems(pipeline(batch={threshold: 10}))
    assert (problem.code, problem.path) == ("exclusive_fields", f"spec.batch.{threshold}")
    assert problem.hint


def test_rules_for_transactions_stay() -> None:
    document: Any = parse(pipeline(batch={"respect_source_tx": False, "max_tx_ms": 5}))
    found = batching(document.spec.batch, document.spec.latency)
    assert isinstance(found, PacedBatch)
    assert (found.latency_ms, found.max_ms, found.respect_source_tx, found.max_tx_ms) == (200, 200, False, 5)
    assert batching(Batch(), None) == Batch()


@pytest.mark.parametrize("kind", ["generate", "file", "spark"])
def test_sources_that_cannot_keep_one(kind: str) -> None:
    fields = {"file": {"path": "in", "format": "text"}, "spark": {"format": "rate"}}.get(kind, {})
    (problem,) = problems(pipeline(source={"type": kind, **fields}))
    assert (problem.code, problem.path) == ("latency_unavailable", "spec.latency")
    assert kind in problem.message
    assert "use a source of type" in (problem.hint or "")
    assert {"http", "stream"} <= set(re.findall(r"\w+", problem.hint or ""))


def test_a_source_that_runs_by_itself_has_none() -> None:
    spec = {"type": "generate", "stream": "a", "latency": "1s"}
    (problem,) = problems({"kind": "Source", "metadata": {"name": "s"}, "spec": spec})
    assert (problem.code, problem.path) == ("unknown_field", "spec.latency")


def test_the_document_goes_before_the_defaults() -> None:
    defaults = {"pipeline": {"batch": {"max_ms": 5, "max_tx_ms": 7}}}
    assert with_defaults(pipeline(), defaults)["spec"]["batch"] == {"max_tx_ms": 7}
    own = pipeline(batch={"max_events": 3})
    del own["spec"]["latency"]
    filled = with_defaults(own, {"pipeline": {"latency": "1s", **defaults["pipeline"]}})["spec"]
    assert filled["batch"] == {"max_events": 3, "max_ms": 5, "max_tx_ms": 7}
    assert "latency" not in filled
