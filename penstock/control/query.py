"""Asking a worker about streams in SQL."""

from __future__ import annotations

import httpx

from penstock.control.judge import WORKER_WAIT_S
from penstock.control.rpc import QueryRequest
from penstock.control.service import Service
from penstock.engine.query import QueryResult
from penstock.errors import PenstockError, Problem, Unavailable


class QueryRefused(PenstockError):
    """A worker has refused a query, or could not end it."""

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


def ask(service: Service, sql: str, limit: int, timeout_ms: int) -> QueryResult:
    """The rows that a query over streams finds."""
    worker = service.judge.worker(WORKER_WAIT_S)
    if worker is None:
        raise Unavailable(_no_worker())
    try:
        request = QueryRequest(sql=sql, limit=limit, timeout_s=timeout_ms / 1000)
        answer = service.rpc.query(worker, request)
    except httpx.HTTPStatusError as error:
        message = f"worker {worker.id} could not answer: {error.response.status_code}"
        raise Unavailable(Problem(code="worker_failed", message=message, hint="its log says why")) from None
    except httpx.HTTPError:
        raise Unavailable(_no_worker()) from None
    if answer.result is None:
        raise QueryRefused(answer.status, answer.problems)
    return answer.result


def _no_worker() -> Problem:
    hint = "wait a moment and try again"
    return Problem(code="no_worker", message="no worker is ready to run a query", hint=hint)
