"""The streams that a flow reads and writes."""

from __future__ import annotations

from penstock.errors import Invalid, NotFound
from penstock.frames.site import Site
from penstock.streams.home import StreamPlace
from penstock.streams.pool import Pool

LOGS = Pool()
"""The logs of this process: all its flows share a committer and descriptors per stream."""


def place_of(site: Site, stream: str, *, field: str) -> StreamPlace:
    """The place of a stream; raises `Invalid` at `field` if the stream does not exist."""
    try:
        return site.stream(stream)
    except NotFound as error:
        problems = [problem.model_copy(update={"path": field}) for problem in error.problems]
        raise Invalid(*problems) from None
