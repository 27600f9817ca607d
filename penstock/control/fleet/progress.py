"""Directories and checkpoints of flows."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.file.paths import is_local, local_path
from penstock.connectors.file.storage import storage_for
from penstock.control.registry.records import Record
from penstock.control.streams.logs import Streams, dead_letters_id, input_of
from penstock.engine.plan.plan import Plan
from penstock.engine.plan.reach import is_seen
from penstock.engine.runtime.checkpoints import KEY, memory_of, position_of
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.settings import Settings
from penstock.spark.stored_files import StoredFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COPIES, HOME_ID = "copies", "home.id"
"""Names at the URL of checkpoints: of the directory with a flow's copies, and of the file with the id."""


def state_directory(settings: Settings, record: Record) -> str:
    """The directory of a flow. A later document of the same name uses another, and inherits no progress."""
    directory = f"{settings.checkpoint_url.rstrip('/')}/{record.id}/{record.uid[:8]}"
    return local_path(directory) if is_local(directory) else directory


def flow_directory(settings: Settings, record: Record) -> Path:
    """The directory for a flow's own files: next to Spark's checkpoint, or local if the latter is remote."""
    directory = state_directory(settings, record)
    if is_local(directory):
        return Path(local_path(directory))
    return settings.home / "flows" / record.id / record.uid[:8]


def shared_directory(settings: Settings) -> Path | None:
    """The directory with the progress of flows, if other machines share it; None if it is local."""
    url = settings.checkpoint_url
    seen = is_local(url) and is_seen(url, settings.storage.shared)
    return Path(local_path(url)) if seen else None


def can_move(settings: Settings) -> bool:
    """Whether a worker on another machine can continue the flows of a worker with these settings."""
    return not is_local(settings.checkpoint_url) or shared_directory(settings) is not None


def copies_of(settings: Settings, record: Record) -> str | None:
    """The URL of the copies of a flow's own files, if they are local while its checkpoints are not."""
    directory = state_directory(settings, record)
    return None if is_local(directory) else f"{directory}/{COPIES}"


def stored_home_id(settings: Settings, spark: SparkSession) -> str | None:
    """The id of the place of checkpoints, if it is at a URL: flows move among the workers that have it."""
    if is_local(settings.checkpoint_url):
        return None
    files = StoredFiles(spark, settings.checkpoint_url)
    files.add(HOME_ID, str(uuid.uuid4()).encode())  # unless another worker was first
    found = files.read(HOME_ID)
    assert found is not None
    return found.decode()


def flow_name(record: Record) -> str:
    """The permanent name of a flow as a reader and producer of streams; unique to this document."""
    return f"{record.kind.lower()}:{record.id}:{record.uid[:8]}"


def site_of(settings: Settings, streams: Streams, record: Record) -> Site:
    """The site of a flow in this process."""
    return Site(
        flow_name(record),
        record.flow.epoch if record.flow else 0,
        streams.place,
        input_of(record),
        dead=dead_letters_id(record),
        revision=record.revision,
        state=flow_directory(settings, record),
        shared=shared_directory(settings) is not None,
        behind_bytes=settings.worker.behind_bytes,
        allow_python=settings.allow_python,
        policy=Policy.of(settings),
    )


def checkpoint_of(settings: Settings, record: Record, plan: Plan) -> str:
    """The checkpoint of a flow: another one if the meaning of its offsets or its state changes."""
    return f"{state_directory(settings, record)}/{memory_of(plan.flow, lambda: plan.output).key}"


def checkpoints_of(settings: Settings, record: Record, spark: SparkSession | None) -> list[str] | None:
    """The keys of a flow's checkpoints that have offsets; None if they can't be listed."""
    directory = state_directory(settings, record)
    if spark is None and not is_local(directory):
        return None
    storage = storage_for(directory, spark)
    found = [path.rpartition("/")[2] for path in storage.children(directory)]
    return [key for key in found if KEY.fullmatch(key) and storage.children(f"{directory}/{key}/offsets")]


def retire_others(settings: Settings, record: Record, checkpoint: str, spark: SparkSession) -> bool:
    """Remove a flow's older checkpoints of the same source, after it has started a new one.

    They are at earlier offsets: resuming from one would redeliver later events. True if the flow has had any
    other checkpoint, so that it may have cursors in streams that it no longer reads.
    """
    directory, _, key = checkpoint.rpartition("/")
    others = [other for other in checkpoints_of(settings, record, spark) or () if other != key]
    for other in others:
        if position_of(other) == position_of(key):
            storage_for(directory, spark).remove(f"{directory}/{other}")
    return bool(others)


def forget_checkpoints(settings: Settings, record: Record, spark: SparkSession | None) -> None:
    """Remove every checkpoint of a flow that is not running, so that it starts a new one at its cursor.

    The flow's other files are retained: its log, and the ledger of its sinks.
    """
    directory = state_directory(settings, record)
    storage = storage_for(directory, spark)
    for path in storage.children(directory):
        if KEY.fullmatch(path.rpartition("/")[2]):
            storage.remove(path)


def remove_state(settings: Settings, record: Record, spark: SparkSession | None = None) -> None:
    """Delete the progress of a deleted flow.

    Without Spark, progress at a URL stays, under a name that is not used again.
    """
    own, directory = flow_directory(settings, record), state_directory(settings, record)
    shutil.rmtree(own, ignore_errors=True)
    if own.parent.is_dir() and not any(own.parent.iterdir()):
        own.parent.rmdir()
    if spark is not None and not is_local(directory):
        storage_for(directory, spark).remove(directory)
