"""Paths that the executors of a Spark cluster cannot reach.

They cannot access directories of the driver's machine, unless the settings list them as shared. Other data
that tasks need from the driver, such as local streams, is sent over the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.file.paths import is_local, local_path
from penstock.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.plan.flow import Flow, Part
    from penstock.settings import Settings

REACH = "spark.penstock.reach"
"""The property of a session on a cluster: the shared directories and the location of checkpoints, as JSON."""


def reach_of(settings: Settings) -> dict[str, str]:
    """The session property for checking flows; empty if tasks run in the driver."""
    if not settings.on_cluster:
        return {}
    return {REACH: json.dumps({"shared": settings.storage.shared, "storage": settings.checkpoint_url})}


def out_of_reach(flow: Flow, spark: SparkSession) -> Iterator[Problem]:
    """A problem for each path that tasks of a flow open and that executors on other machines can't access."""
    known = spark.conf.get(REACH, "")
    if not known:
        return
    reach = json.loads(known)
    shared: list[str] = reach["shared"]
    remembering = flow.remembering
    if remembering and not is_seen(reach["storage"], shared):
        message = (
            f"the executors of the cluster can't access {reach['storage']}, where this step keeps its state"
        )
        hint = (
            "set storage.url to a location that all machines can access, such as s3a://bucket/flows, or add "
            "the"
        )
        hint += " directory to storage.shared if it is mounted on all of them"
        problem = Problem(code="storage_not_shared", message=message, hint=hint)
        yield remembering[0].place.locate(problem)
    parts: list[Part[Any]] = [flow.source, *flow.processors, *flow.sinks]
    for part in parts:
        for field, path in part.component.task_paths():
            if is_seen(path, shared):
                continue
            message = f"{path} is on this machine, and the executors of the cluster can't access it"
            hint = "use a URL such as s3a://… or hdfs://…, or add its directory to storage.shared if it is"
            hint += " mounted on all machines"
            yield part.place.locate(Problem(code="path_not_shared", message=message, path=field, hint=hint))


def is_seen(path: str, shared: Sequence[str]) -> bool:
    """Whether all machines can access a path: a URL, or a path in a shared directory."""
    if not is_local(path):
        return True
    return any(Path(local_path(path)).is_relative_to(local_path(place)) for place in shared)
