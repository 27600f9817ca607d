"""The logs of flows, for those who ask a server: their workers write them, here they are only read."""

from __future__ import annotations

from penstock.control.service import Service, flow_of
from penstock.control.state import flow_directory
from penstock.engine.log_lines import Level, LogReader


def reader_of(service: Service, kind: str, name: str, level: Level) -> LogReader:
    """Reads the log of a flow; Conflict if the document does not run."""
    record = service.get(kind, name)
    flow_of(record)
    return LogReader(flow_directory(service.settings, record), level)
