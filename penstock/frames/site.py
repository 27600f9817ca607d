"""The site of a flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.policy import Policy
from penstock.streams.home import StreamPlace


@dataclass(frozen=True)
class Site:
    """The place where a flow runs, as its components see it."""

    flow: str
    """The permanent name of the flow as a reader and producer of streams: `pipeline:orders:1a2b3c4d`."""

    epoch: int
    """Grows each time the flow is given to a worker, so that streams can tell an older one (invariant 6)."""

    stream: Callable[[str], StreamPlace]
    """Finds the place of a stream; raises `NotFound` if there is none of that id."""

    input: str
    """Id of the stream that holds the events pushed to the flow."""

    dead: str = ""
    """Id of the stream for the flow's dead letters."""

    revision: int = 0
    """The revision of the document that runs."""

    state: Path | None = None
    """The directory for the flow's own files beside Spark's checkpoint; None while it is only analysed."""

    shared: bool = False
    """Whether other machines have that directory too."""

    copies: str | None = None
    """URL of the copies of that directory's files, with which another machine can continue the flow."""

    behind_bytes: int = 1024**3
    """The most bytes kept for a sink that is behind, if its events cannot be read again."""

    allow_python: bool = False
    """Whether steps may run the user's own Python."""

    policy: Policy = field(kw_only=True)
    """What the documents of the flow may reach. Asked again right before something is opened."""


def reader_of(site: Site, step: str) -> str:
    """The name of a step as a reader of a stream beside the input of its flow."""
    return f"{site.flow}/{step}"
