"""Predicates on the state of a flow, for callers that wait for a state."""

from __future__ import annotations

from penstock.control.registry.records import FlowState, Record
from penstock.errors import Conflict, Problem


def flow_of(record: Record) -> FlowState:
    """The flow state of a document; Conflict if it has no flow."""
    if record.flow is None:
        raise Conflict(
            Problem(
                code="not_runnable",
                message=f"{record.kind.lower()} '{record.name}' doesn't run on its own",
                hint=_why_not(record),
            )
        )
    return record.flow


def _why_not(record: Record) -> str:
    spec = record.document.get("spec") or {}
    if record.kind == "Task":
        return "set spec.input and spec.outputs, or list it under 'tasks' of a pipeline"
    if not spec.get("stream"):
        return f"set spec.stream, or use it in a pipeline with {{ref: {record.id}}}"
    return (
        f"a {record.kind.lower()} of type '{spec.get('type')}' doesn't need to be started: pipelines use it "
        "directly"
    )


def at_rest(record: Record) -> bool:
    """Whether no worker holds the flow of a document."""
    return record.flow is None or record.flow.worker is None


def proven(record: Record) -> bool:
    """Whether the current revision of a flow has proven to run, or should no longer run."""
    flow = record.flow
    return flow is None or flow.status != "active" or flow.running_revision == record.revision


def running(record: Record) -> bool:
    """Whether a flow is running, has ended, or has an error."""
    flow = record.flow
    return flow is None or flow.phase == "running" or flow.outcome is not None or bool(flow.error)
