from __future__ import annotations

from typing import Any

import pytest

from penstock.specs.weakened import weakened

TWO = [{"id": "a", "type": "drop"}, {"id": "b", "type": "drop"}]
BEST_EFFORT = [TWO[0], {**TWO[1], "required": False}]


def stream(**wal: Any) -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": "s"}, "spec": {"wal": wal}}


def pipeline(**spec: Any) -> dict[str, Any]:
    whole = {"source": {"type": "generate"}, "sinks": TWO, **spec}
    return {"kind": "Pipeline", "metadata": {"name": "p"}, "spec": whole}


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        (stream(), stream(enabled=False), ["spec.wal.enabled"]),
        (stream(sync=True), stream(), ["spec.wal.sync"]),
        (stream(sync=True), stream(enabled=False), ["spec.wal.enabled"]),
        (stream(), stream(retention_ms=1000), ["spec.wal.retention_ms"]),
        (stream(retention_bytes=2000), stream(retention_bytes=1000), ["spec.wal.retention_bytes"]),
        (stream(enabled=False), stream(sync=True), []),
        (stream(retention_ms=1000), stream(retention_ms=2000), []),
        (pipeline(), pipeline(buffer={"type": "memory"}), ["spec.buffer.type"]),
        (pipeline(), pipeline(sinks=BEST_EFFORT), ["spec.sinks[1].required"]),
        (pipeline(sinks=BEST_EFFORT), pipeline(), []),
        (pipeline(), pipeline(sinks=TWO[:1]), []),
        (
            pipeline(sinks=BEST_EFFORT, commit_policy={"mode": "all"}),
            pipeline(sinks=BEST_EFFORT),
            ["spec.sinks[1].required"],
        ),
        (pipeline(), pipeline(commit_policy={"mode": "quorum", "quorum": 1}), ["spec.commit_policy.quorum"]),
        (pipeline(), pipeline(commit_policy={"mode": "quorum", "quorum": 2}), []),
        (pipeline(), {"kind": "Pipeline"}, []),
    ],
)
def test_what_is_no_longer_promised(before: dict[str, Any], after: dict[str, Any], paths: list[str]) -> None:
    found = weakened(before, after)
    assert [problem.path for problem in found] == paths
    assert {problem.code for problem in found} <= {"weaker_guarantee"}
    assert weakened(before, before) == weakened(after, after) == []
