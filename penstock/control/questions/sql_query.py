"""SQL queries over streams, run by a worker."""

from __future__ import annotations

from penstock.control.documents.service import Service
from penstock.control.questions.rpc import QueryRequest
from penstock.engine.runtime.sql_queries import QueryResult
from penstock.errors import PenstockError, Problem


class QueryRefused(PenstockError):
    """A worker has refused a query, or could not complete it."""

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


def ask(service: Service, sql: str, limit: int, timeout_ms: int) -> QueryResult:
    """The rows that a query over streams finds."""
    request = QueryRequest(sql=sql, limit=limit, timeout_s=timeout_ms / 1000)
    answer = service.judge.ask(lambda worker: service.rpc.query(worker, request), _no_worker(), by="apart")
    if answer.result is None:
        raise QueryRefused(answer.status, answer.problems)
    return answer.result


def _no_worker() -> Problem:
    hint = "wait a moment and try again"
    return Problem(code="no_worker", message="no worker is ready to run a query", hint=hint)
