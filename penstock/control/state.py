"""Where flows keep their progress."""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.connectors.paths import is_local, local_path
from penstock.control.registry.records import Record
from penstock.engine.flow import Flow
from penstock.settings import Settings


def state_directory(settings: Settings, record: Record) -> str:
    """The directory of a flow. A later namesake has another one: it must not inherit progress."""
    return f"{settings.checkpoint_url.rstrip('/')}/{record.id}/{record.uid[:8]}"


def flow_directory(settings: Settings, record: Record) -> Path:
    """Where a flow keeps what Spark's checkpoint does not: beside it, or here if that is remote."""
    directory = state_directory(settings, record)
    if is_local(directory):
        return Path(local_path(directory))
    return settings.home / "flows" / record.id / record.uid[:8]


def flow_name(record: Record) -> str:
    """Names a flow for good, as a reader and a producer of streams. A later namesake is another one."""
    return f"{record.kind.lower()}:{record.id}:{record.uid[:8]}"


def checkpoint_of(settings: Settings, record: Record, flow: Flow) -> str:
    """The checkpoint of a flow: one for each meaning its offsets can have."""
    return f"{state_directory(settings, record)}/{flow.position_key}"


def remove_state(settings: Settings, record: Record) -> None:
    """Delete the progress of a flow that is gone. On remote storage it stays, harmless by its name."""
    directory = state_directory(settings, record)
    if is_local(directory):
        shutil.rmtree(local_path(directory), ignore_errors=True)
        parent = Path(local_path(directory)).parent
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
