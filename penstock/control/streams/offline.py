"""The logs in a home directory on disk, available without a running server."""

from __future__ import annotations

from pathlib import Path

from penstock.control.registry.store import Registry
from penstock.errors import NotFound, Problem, did_you_mean
from penstock.settings import Settings
from penstock.specs.documents import derive_id
from penstock.streams.home import StreamHome


def stored_logs(settings: Settings, registry: Registry) -> dict[str, Path]:
    """The directory of every log that belongs to a document, by the id of the stream.

    Nothing is created or changed. Misfits of a stream and the input of a pipeline have logs under the uid of
    their owner.
    """
    lives = {
        record.uid[:8] for kind in ("Stream", "Pipeline") for record in registry.list(kind, limit=None).items
    }
    found = sorted(StreamHome.of(settings).root.glob("*/*"))
    return {path.parent.name: path for path in found if path.name in lives}


def stored_log(settings: Settings, registry: Registry, name: str) -> Path:
    """The directory of a stream's log; NotFound if there is none."""
    logs = stored_logs(settings, registry)
    if (found := logs.get(derive_id(name))) is None:
        hint = did_you_mean(name, logs) if logs else f"there are none in {settings.home}"
        raise NotFound(Problem(code="not_found", message=f"there is no log of a stream '{name}'", hint=hint))
    return found
