"""Flows with paths that the executors of a cluster do not see are refused before they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.plan.reach import out_of_reach, reach_of
from penstock.settings import load
from tests.flows import flow_of, pipeline

if TYPE_CHECKING:
    from penstock.errors import Problem

WINDOW = {
    "id": "w",
    "type": "window",
    "time": "time",
    "size": "1m",
    "aggregates": {"n": "count(*)"},
}


class Session:
    """The part of a session that is asked: its properties."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._properties = properties

    @property
    def conf(self) -> Session:
        return self

    def get(self, name: str, default: str) -> str:
        return self._properties.get(name, default)


def problems(home: Path, spec: dict[str, Any], **chosen: Any) -> list[Problem]:
    named = {name.replace("__", "."): value for name, value in chosen.items()}
    settings = load({"home": home, **named}, env={}, cwd=home).settings
    session: Any = Session(reach_of(settings))
    return list(out_of_reach(flow_of(pipeline(**spec)), session))


CLUSTER = {"spark__master": "spark://somewhere:7077"}


def test_in_one_process_everything_is_seen(tmp_path: Path) -> None:
    spec = {"processors": [WINDOW], "sinks": [{"type": "file", "path": "out", "format": "json"}]}
    assert problems(tmp_path, spec) == []
    assert problems(tmp_path, spec, spark__master="local[4]") == []


def test_streams_need_nothing(tmp_path: Path) -> None:
    assert problems(tmp_path, {}, **CLUSTER) == []


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ({}, False),
        ({"storage__url": "/data/flows"}, False),
        ({"storage__url": "/data/flows", "storage__shared": ["/dat"]}, False),
        ({"storage__url": "/data/flows", "storage__shared": "/mnt:/data"}, True),
        ({"storage__url": "s3a://bucket/flows"}, True),
        ({"storage__url": "hdfs://names/flows"}, True),
    ],
)
def test_state_is_kept_where_all_machines_see_it(tmp_path: Path, chosen: dict[str, Any], seen: bool) -> None:
    found = problems(tmp_path, {"processors": [WINDOW]}, **CLUSTER, **chosen)
    if seen:
        assert found == []
        return
    assert [(p.code, p.path) for p in found] == [("storage_not_shared", "spec.processors[0]")]
    assert "storage.url" in str(found[0].hint)


def test_files_of_tasks_have_to_be_shared(tmp_path: Path) -> None:
    spec = {
        "source": {"type": "file", "path": "/data/in", "format": "text"},
        "processors": [
            {"type": "lookup", "file": {"path": "/home/t.csv"}, "on": {"value": "k"}, "columns": "v STRING"}
        ],
        "sinks": [
            {"id": "a", "type": "file", "path": "/home/out", "format": "json"},
            {"id": "b", "type": "file", "path": "s3a://bucket/out", "format": "json"},
            {"id": "c", "type": "spark", "format": "json", "options": {"path": "file:///home/out"}},
        ],
    }
    found = problems(tmp_path, spec, **CLUSTER, storage__shared=["/data"])
    assert {p.code for p in found} == {"path_not_shared"}
    places = ["spec.processors[0].file.path", "spec.sinks[0].path", "spec.sinks[2].options.path"]
    assert [p.path for p in found] == places
