"""The site of a measured flow, which reads recorded streams and writes to its own directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.connectors.base import Source
from penstock.engine.plan.declared_site import declared_stream
from penstock.engine.plan.flow import Flow, Lookup, resolve_flow
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.processors.base import Processor
from penstock.settings import Settings
from penstock.specs.documents import derive_id
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace

DEAD = "bench.dead"
LIFE = "bench"

Recorded = Callable[[str], Path | None]
"""Returns the directory of a stream's log, by id; None if this machine has none."""


class Places:
    """Creates flows from documents, each with a site below one directory."""

    def __init__(self, directory: Path, settings: Settings, lookup: Lookup, recorded: Recorded) -> None:
        self._directory, self._settings, self._lookup, self._recorded = directory, settings, lookup, recorded
        self._home = StreamHome(directory / "streams", directory / "memory", 0)
        self._defaults = settings.defaults.model_dump()
        self._read: set[str] = set()

    def flow(self, raw: Mapping[str, Any], name: str) -> Flow:
        """The flow of a document; as a reader of streams it has the id `name`."""
        flow = resolve_flow(raw, self._lookup, self._site(raw, name), self._defaults)
        self._read = {*_read(flow)} - written(flow)
        return replace(flow, id=name)

    def _site(self, raw: Mapping[str, Any], name: str) -> Site:
        pipeline = derive_id(str(raw["metadata"]["name"]))
        return Site(
            f"bench:{name}",
            0,
            self._stream,
            f"{pipeline}.in",
            dead=DEAD,
            state=self._directory / name / "state",
            allow_python=self._settings.allow_python,
            policy=Policy.of(self._settings, all_variables=True),
        )

    def _stream(self, name: str) -> StreamPlace:
        stream = derive_id(name)
        spec = StreamSpec() if stream == DEAD else declared_stream(name, self._lookup, self._defaults)
        if stream in self._read and (found := self._recorded(stream)) is not None:
            return StreamPlace(stream, spec, found)
        return StreamPlace(stream, spec, self._home.ensure(stream, LIFE, spec))


def _read(flow: Flow) -> list[str]:
    components: list[Source | Processor] = [flow.source.component]
    components += [part.component for part in flow.processors]
    return [place.id for each in components if (place := each.reads(flow.site)) is not None]


def written(flow: Flow) -> set[str]:
    """The streams that steps write late events to."""
    named = (getattr(part.component, "late", None) for part in flow.processors)
    return {derive_id(stream) for stream in named if isinstance(stream, str)}


def forget(flow: Flow) -> None:
    """Remove the cursors of a flow from the streams that it has read."""
    for reader, directory in flow.cursors:
        LOGS.log(directory).forget_cursor(reader)
