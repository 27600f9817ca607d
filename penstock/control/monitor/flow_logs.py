"""The logs of flows, read by the server: their workers write them."""

from __future__ import annotations

from penstock.control.documents.service import Service, flow_of
from penstock.control.fleet.progress import flow_directory
from penstock.engine.runtime.flow_log_reader import Level, LogReader


def reader_of(service: Service, kind: str, name: str, level: Level) -> LogReader:
    """A reader of a flow's log; Conflict if the document has no flow."""
    record = service.get(kind, name)
    flow_of(record)
    return LogReader(flow_directory(service.settings, record), level)
