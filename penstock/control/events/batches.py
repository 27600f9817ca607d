"""The batches of a flow."""

from __future__ import annotations

from penstock.control.documents.flow_states import flow_of
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory
from penstock.engine.runtime.batch_log import BatchLine, read_batches


def batches_of(service: Service, kind: str, name: str, limit: int) -> list[BatchLine]:
    """The last batches and failed attempts of a flow, newest first; Conflict if the document has no flow."""
    record = service.registry.get(kind, name)
    flow_of(record)
    keeper = service.keeper_of(record)
    if keeper is not None:
        return service.rpc.files(keeper).batches(kind, record.id, limit)
    return read_batches(flow_directory(service.settings, record), limit)
