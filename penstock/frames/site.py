"""The site of a flow: its streams, directories and permissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.policy import Policy
from penstock.streams.home import StreamPlace


@dataclass(frozen=True)
class Site:
    """The environment in which a flow runs, as seen by its components."""

    flow: str
    """The permanent name of the flow as a reader and producer of streams: `pipeline:orders:1a2b3c4d`."""

    epoch: int
    """Grows with each assignment of the flow to a worker; streams fence older assignments (invariant 6)."""

    stream: Callable[[str], StreamPlace]
    """Returns the place of a stream; raises `NotFound` if there is no stream with that id."""

    input: str
    """The id of the stream that stores the events pushed to the flow."""

    dead: str = ""
    """The id of the stream for the flow's dead letters."""

    revision: int = 0
    """The revision of the document that runs."""

    state: Path | None = None
    """The directory for the flow's own files, next to Spark's checkpoint; None while it is only analyzed."""

    shared: bool = False
    """Whether other machines share the directory `state`."""

    copies: str | None = None
    """URL of the copies of that directory's files, with which another machine can continue the flow."""

    behind_bytes: int = 1024**3
    """The maximum bytes to store for a sink that is behind, if its events cannot be read again."""

    allow_python: bool = False
    """Whether steps may run user-defined Python code."""

    policy: Policy = field(kw_only=True)
    """The policy for files, addresses and variables of the flow. Checked again before each use."""


def reader_of(site: Site, step: str) -> str:
    """The reader name of a step that reads a stream in addition to the input of its flow."""
    return f"{site.flow}/{step}"
