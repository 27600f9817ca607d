"""The functions that SQL may call, as a worker lists them."""

from __future__ import annotations

from penstock.control.documents.service import Service
from penstock.errors import Problem, Unavailable
from penstock.sql.described import FunctionInfo


def ask(service: Service) -> list[FunctionInfo]:
    """The allowed functions of Spark; `Unavailable` while no worker is ready."""
    hint = "wait a moment and try again"
    no_worker = Problem(code="no_worker", message="no worker is ready to list its functions", hint=hint)
    if service.judge.worker(wait_s=0.0) is None:  # a user who is typing should not wait for a worker
        raise Unavailable(no_worker)
    return service.judge.ask(service.rpc.functions, no_worker)
