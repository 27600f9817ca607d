"""The start of a server: streams are taken up, losses of the restart are reported, readers are expected."""

from __future__ import annotations

from penstock.control.ends import input_stream
from penstock.control.layout import all_records, lookup_in
from penstock.control.readers import expect_reader
from penstock.control.service import Service
from penstock.control.state import flow_directory, flow_name
from penstock.engine.flow_log import FlowLog


def take_up(service: Service) -> None:
    """Take up all streams where the last server left them, and tell each flow which events it has lost."""
    service.streams.start()
    records = all_records(service)
    lookup = lookup_in(records)
    for record in records:
        if record.flow is None:
            continue
        expect_reader(service.streams, record, lookup)
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
