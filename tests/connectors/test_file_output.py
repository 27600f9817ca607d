"""Files of the `file` sink in the `file` source: its directories add no column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.flows import flow_of, json_rows, pipeline, run

ROW = {"id": "seq", "kind": "if(seq % 2 = 0, 'a', 'b')"}


def copied(spark: SparkSession, tmp_path: Path, written: dict[str, Any], read: dict[str, Any]) -> list[Any]:
    """Events that were written by one pipeline and read by another."""
    sink = {"type": "file", "path": str(tmp_path / "out"), "format": "json", **written}
    source = {"type": "generate", "count": 4, "row": ROW}
    steps = [{"type": "sql", "query": "SELECT kind FROM input"}] if sink["format"] == "text" else []
    first = pipeline(source=source, processors=steps, sinks=[sink])
    assert run(spark, first, tmp_path / "ck1").outcome == "completed"
    assert [path.name.partition("=")[0] for path in (tmp_path / "out").iterdir() if path.is_dir()]
    source = {"type": "file", "path": str(tmp_path / "out"), "format": sink["format"], "finite": True, **read}
    copy = {"type": "file", "path": str(tmp_path / "copy"), "format": "json"}
    state = run(spark, pipeline(source=source, sinks=[copy]), tmp_path / "ck2")
    assert state.outcome == "completed", state.error
    return sorted(json_rows(tmp_path / "copy"), key=lambda row: row.get("id", row.get("value")))


@pytest.mark.parametrize("schema", ["kind STRING, id BIGINT", None])
@pytest.mark.parametrize("how", [{"format": "json"}, {"format": "parquet", "partition_by": ["kind"]}])
def test_the_columns_are_those_that_were_written(
    spark: SparkSession, tmp_path: Path, how: dict[str, Any], schema: str | None
) -> None:
    rows = copied(spark, tmp_path, how, {"schema": schema} if schema else {})
    assert rows == [{"id": n, "kind": "ab"[n % 2]} for n in range(4)]


def test_a_schema_names_all_columns_that_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = copied(spark, tmp_path, {"partition_by": ["kind"]}, {"schema": "id BIGINT"})
    assert rows == [{"id": n} for n in range(4)]
    assert copied(spark, tmp_path / "text", {"format": "text"}, {}) == [{"value": kind} for kind in "aabb"]
    batches = {"type": "file", "path": str(tmp_path / "out"), "format": "json"}
    source = flow_of(pipeline(source={**batches, "schema": "id BIGINT, penstock_batch STRING"})).source
    read = source.component.read(spark, flow_of(pipeline()).batch, flow_of(pipeline()).site)
    assert read.columns[:2] == ["id", "penstock_batch"]  # one who asks for it gets it
