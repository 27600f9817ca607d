"""Flows of the same shape are planned once."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan import shapes
from penstock.engine.plan.analysis import Analysis, analyse, offline
from penstock.engine.plan.shapes import Shapes

QUERY = "SELECT id, amount * 1.1 AS amount FROM input"


def stream(name: str, schema: str = "id BIGINT, amount DOUBLE") -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": schema}}


def flow(name: str, source: str, sink: dict[str, Any], query: str = QUERY) -> dict[str, Any]:
    steps = [{"type": "sql", "query": query}]
    spec = {"source": {"type": "stream", "stream": source}, "processors": steps, "sinks": [sink]}
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the flows that Spark has planned."""
    found: list[str] = []
    plan_flow = shapes.plan_flow

    def counted(flow: Any, spark: SparkSession) -> Any:
        found.append(flow.id)
        return plan_flow(flow, spark)

    monkeypatch.setattr(shapes, "plan_flow", counted)
    return found


def judged(spark: SparkSession, documents: list[dict[str, Any]]) -> dict[str, Analysis]:
    lookup, known = offline(documents)
    shared, session = Shapes(), spark.newSession()
    return {
        raw["metadata"]["name"]: analyse(raw, lookup, known, spark=session, shapes=shared)
        for raw in documents
        if raw["kind"] == "Pipeline"
    }


def test_names_streams_and_files_make_no_difference(spark: SparkSession, planned: list[str]) -> None:
    found = judged(
        spark,
        [
            *(stream(name) for name in ("a", "b", "out")),
            flow("first", "a", {"type": "stream", "stream": "out"}),
            flow("second", "b", {"id": "stream", "type": "file", "path": "x", "format": "json"}),
            flow("third", "a", {"type": "stream", "stream": "out"}),
        ],
    )
    assert all(each.valid for each in found.values()), found
    assert planned == ["first"]
    assert found["second"].steps == found["first"].steps
    assert [column.name for column in found["third"].steps[-1].columns] == ["id", "amount"]


def test_columns_and_queries_make_one(spark: SparkSession, planned: list[str]) -> None:
    sink = {"type": "drop"}
    found = judged(
        spark,
        [
            stream("a"),
            stream("wide", "id BIGINT, amount DOUBLE, more STRING"),
            flow("first", "a", sink),
            flow("of wide", "wide", sink),
            flow("other", "a", sink, "SELECT id FROM input"),
        ],
    )
    assert planned == ["first", "of_wide", "other"]
    assert len(found["other"].steps[-1].columns) == 1


def test_each_flow_has_its_own_problems(spark: SparkSession, planned: list[str]) -> None:
    found = judged(
        spark,
        [
            stream("a"),
            stream("out"),
            stream("narrow", "id STRING"),
            flow("good", "a", {"type": "stream", "stream": "out"}),
            flow("bad sink", "a", {"type": "stream", "stream": "narrow"}),
            flow("bad query", "a", {"type": "drop"}, "SELECT none FROM input"),
            flow("bad query too", "a", {"type": "drop"}, "SELECT none FROM input"),
        ],
    )
    assert found["good"].valid
    assert {problem.path for problem in found["bad sink"].errors} == {"spec.sinks[0].stream"}
    for name in ("bad query", "bad query too"):
        assert [each.path for each in found[name].errors] == ["spec.processors[0].query"]
    assert planned == ["good", "bad_query", "bad_query_too"]
