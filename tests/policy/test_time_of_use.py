"""What a policy says when something is opened, not only when its document is judged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.flow import resolve_flow
from penstock.engine.plan.plan import plan_run
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.run import Run
from penstock.engine.trials.trial import Bench, try_out
from penstock.errors import Invalid
from penstock.frames.faults import Fault
from penstock.policy.addresses import Addresses
from penstock.policy.paths import Paths
from penstock.policy.policy import Policy
from penstock.processors.tables.file import FileTable
from penstock.processors.tables.snapshots import Table, Wanted
from tests.flows import NO_STREAMS, pipeline


def below(root: Path) -> Policy:
    return Policy(Paths((os.path.realpath(root),)), Addresses(private=True))


def refused(raw: dict[str, Any], policy: Policy, **environment: str) -> list[tuple[str, str | None]]:
    site = replace(NO_STREAMS, policy=policy)
    with pytest.raises(Invalid) as raised:
        resolve_flow(raw, lambda kind, name: None, site, environment=environment)
    return [(problem.code, problem.path) for problem in raised.value.problems]


def test_what_a_variable_holds_is_judged_too(tmp_path: Path) -> None:
    sink = {"type": "file", "path": "${PENSTOCK_VAR_OUT}/x", "format": "json"}
    policy = below(tmp_path)
    found = refused(pipeline(sinks=[sink]), policy, PENSTOCK_VAR_OUT="/etc")
    assert found == [("path_not_allowed", "spec.sinks[0].path")]
    step = {"type": "http", "url": "http://${PENSTOCK_VAR_HOST}/", "into": "x"}
    found = refused(pipeline(processors=[step]), policy, PENSTOCK_VAR_HOST="[::ffff:a9fe:a9fe]")
    assert found == [("address_not_allowed", "spec.processors[0].url")]


def test_a_document_that_is_referred_to_is_judged_with_the_flow(tmp_path: Path) -> None:
    hidden = {
        "kind": "Sink",
        "metadata": {"name": "hidden"},
        "spec": {"type": "file", "path": "/etc/x", "format": "json"},
    }
    site = replace(NO_STREAMS, policy=below(tmp_path))
    with pytest.raises(Invalid) as raised:
        resolve_flow(pipeline(sinks=[{"ref": "hidden"}]), lambda *_: hidden, site)
    (problem,) = raised.value.problems
    assert (problem.code, problem.path) == ("path_not_allowed", "spec.sinks[0].ref")


def test_a_test_run_sees_no_variable_of_the_worker(spark: SparkSession, tmp_path: Path) -> None:
    steps = [{"type": "sql", "query": "SELECT '${PATH}' AS path FROM input"}]
    bench = Bench(spark, lambda *_: None, lambda _: set(), policy=below(tmp_path))
    result = try_out(bench, pipeline(processors=steps), [{"seq": 1}]).result
    assert [(each.code, each.path) for each in result.errors] == [
        ("variable_not_allowed", "spec.processors[0].query")
    ]


def test_a_table_in_a_file_that_has_become_a_link_is_not_read_again(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.csv"
    root.mkdir()
    outside.write_text("code,name\nA,secret\n")
    file = root / "table.csv"
    file.write_text("code,name\nA,Germany\n")
    schema = pa.schema([("name", pa.string()), ("code", pa.string())])
    source = FileTable(path=str(file))
    table = Table(Wanted(source, schema, ("code",), 10, 0.0, 0.0, None, below(root)))
    snapshot, _ = table.current()
    assert snapshot.rows.column("name").to_pylist() == ["Germany"]
    file.unlink()
    file.symlink_to(outside)
    snapshot, logs = table.current()  # the table stays as it was
    assert snapshot.rows.column("name").to_pylist() == ["Germany"]
    assert "outside the directories" in logs[0]
    with pytest.raises(Fault, match="outside the directories"):
        Table(table.wanted).current()


def test_a_sink_whose_directory_has_become_a_link_gets_nothing(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "out").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    source = {"type": "generate", "rate": 10, "count": 20}
    sink = {"type": "file", "path": str(root / "out"), "format": "json"}
    site = replace(NO_STREAMS, policy=below(root), state=tmp_path / "state")
    flow = resolve_flow(pipeline(source=source, sinks=[sink]), lambda *_: None, site)
    plan = plan_run(flow, spark)
    (root / "out").rmdir()
    (root / "out").symlink_to(tmp_path / "outside")
    counters = Counters({each.id: each.component.guarantee for each in flow.sinks}, None)
    run = Run(plan, str(tmp_path / "checkpoint"), counters)
    run.start()
    try:
        while not run.observe():
            pass
        assert run.failure is not None
        assert run.failure.problem.code == "path_not_allowed"
        assert run.failure.problem.path == "spec.sinks[0].path"
    finally:
        run.stop()
        run.close()
    assert not list((tmp_path / "outside").iterdir())
