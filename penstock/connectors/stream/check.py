"""The connection test of streams: checks that the stream exists."""

from __future__ import annotations

from penstock.connectors.probe import Probe
from penstock.errors import Invalid
from penstock.frames.logs import place_of
from penstock.frames.site import Site


def probe_stream(site: Site, stream: str) -> Probe:
    """The result of the test."""
    try:
        place_of(site, stream, field="stream")
    except Invalid as error:
        return Probe(problems=error.problems)
    return Probe()
