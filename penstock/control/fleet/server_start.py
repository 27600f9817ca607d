"""The start of a server: opens streams, reports events lost by the restart, and registers readers."""

from __future__ import annotations

from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.graph.flow_ends import input_stream, lookup_in
from penstock.control.graph.layout import all_records
from penstock.control.streams.readers import expect_readers
from penstock.engine.runtime.flow_log import FlowLog


def take_up(service: Service) -> None:
    """Open all streams as the last server left them, and log for each flow the events that were lost."""
    service.streams.start()
    records = all_records(service)
    lookup = lookup_in(records)
    flows = [record for record in records if record.flow is not None]
    expect_readers(service.streams, [(record, None) for record in flows], lookup)
    for record in flows:
        stream = input_stream(record.document, record.id, lookup)
        lost = service.streams.lost.get(stream or "", 0)
        if lost:
            flow_log = FlowLog(flow_name(record), flow_directory(service.settings, record))
            flow_log.begin()
            flow_log.warning(
                f"{lost:,} events of '{stream}' were lost: they were in memory when Penstock was restarted",
                lost=lost,
                reason="restart",
            )
