"""Where flows keep their progress."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.base import Site
from penstock.connectors.paths import is_local, local_path
from penstock.connectors.storage import storage_for
from penstock.control.registry.records import Record
from penstock.control.streams import Streams, dead_letters_id, input_id
from penstock.engine.checkpoints import KEY, memory_of, position_of
from penstock.engine.plan import Plan
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def state_directory(settings: Settings, record: Record) -> str:
    """The directory of a flow. A later namesake has another one: it must not inherit progress."""
    directory = f"{settings.checkpoint_url.rstrip('/')}/{record.id}/{record.uid[:8]}"
    return local_path(directory) if is_local(directory) else directory


def flow_directory(settings: Settings, record: Record) -> Path:
    """Where a flow keeps what Spark's checkpoint does not: beside it, or here if that is remote."""
    directory = state_directory(settings, record)
    if is_local(directory):
        return Path(local_path(directory))
    return settings.home / "flows" / record.id / record.uid[:8]


def flow_name(record: Record) -> str:
    """Names a flow for good, as a reader and a producer of streams. A later namesake is another one."""
    return f"{record.kind.lower()}:{record.id}:{record.uid[:8]}"


def site_of(settings: Settings, streams: Streams, record: Record) -> Site:
    """What a flow may know of the place where it runs."""
    return Site(
        flow_name(record),
        record.flow.epoch if record.flow else 0,
        streams.place,
        input_id(record.id),
        dead=dead_letters_id(record),
        revision=record.revision,
        state=flow_directory(settings, record),
        behind_bytes=settings.worker.behind_bytes,
        allow_python=settings.allow_python,
    )


def checkpoint_of(settings: Settings, record: Record, plan: Plan) -> str:
    """The checkpoint of a flow: one for each meaning that its offsets and its memory can have."""
    return f"{state_directory(settings, record)}/{memory_of(plan.flow, lambda: plan.output).key}"


def checkpoints_of(settings: Settings, record: Record, spark: SparkSession | None) -> list[str] | None:
    """The keys of the checkpoints under which a flow has read anything; None if nobody can tell."""
    directory = state_directory(settings, record)
    if spark is None and not is_local(directory):
        return None
    storage = storage_for(directory, spark)
    found = [path.rpartition("/")[2] for path in storage.children(directory)]
    return [key for key in found if KEY.fullmatch(key) and storage.children(f"{directory}/{key}/offsets")]


def retire_others(settings: Settings, record: Record, checkpoint: str, spark: SparkSession) -> None:
    """Remove the checkpoints of the same source that a flow has left behind for a new one.

    They are at an earlier place: to go on with one of them would be to deliver again what came since.
    """
    directory, _, key = checkpoint.rpartition("/")
    for other in checkpoints_of(settings, record, spark) or ():
        if other != key and position_of(other) == position_of(key):
            storage_for(directory, spark).remove(f"{directory}/{other}")


def remove_state(settings: Settings, record: Record) -> None:
    """Delete the progress of a flow that is gone. On remote storage it stays, harmless by its name."""
    directory = state_directory(settings, record)
    if is_local(directory):
        shutil.rmtree(local_path(directory), ignore_errors=True)
        parent = Path(local_path(directory)).parent
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
