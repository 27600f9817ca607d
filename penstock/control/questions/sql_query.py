"""SQL queries over streams, run by a worker."""

from __future__ import annotations

import threading
import uuid

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import WorkerInfo
from penstock.control.questions.rpc import QueryAnswer, QueryRequest
from penstock.engine.runtime.sql_queries import Cancelled, QueryResult
from penstock.errors import Conflict, NotFound, PenstockError, Problem


class QueryRefused(PenstockError):
    """A worker has rejected a query, or could not complete it."""

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


class SqlQueries:
    """Runs queries on workers. A query can be canceled by its id."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._under_way: dict[str, threading.Event] = {}
        """The queries of this server; the event of a query is set when the query is canceled."""

    def ask(self, sql: str, limit: int, timeout_ms: int, query_id: str | None = None) -> QueryResult:
        """The rows that a query over streams finds."""
        request = QueryRequest(
            sql=sql, limit=limit, timeout_s=timeout_ms / 1000, id=query_id or uuid.uuid4().hex
        )
        stop = threading.Event()
        if self._under_way.setdefault(request.id, stop) is not stop:
            message = f"a query with the id '{request.id}' is running"
            raise Conflict(Problem(code="query_exists", message=message, path="id"))

        def run(worker: WorkerInfo) -> QueryAnswer:
            if stop.is_set():  # canceled while waiting for a worker
                raise Cancelled
            return self._service.rpc.query(worker, request)

        try:
            answer = self._service.judge.ask(run, _no_worker(), by="apart")
        finally:
            del self._under_way[request.id]
        if answer.result is None:
            raise QueryRefused(answer.status, answer.problems)
        return answer.result

    def cancel(self, query_id: str) -> None:
        """Cancel a running query; NotFound if there is none with this id."""
        waiting = self._under_way.get(query_id)
        if waiting is not None:
            waiting.set()
        workers = [worker for worker in self._service.flows.workers() if worker.alive]
        found = [self._service.rpc.cancel(worker, query_id) for worker in workers]
        if waiting is None and not any(found):
            message = f"no query with the id '{query_id}' is running"
            raise NotFound(Problem(code="not_found", message=message))


def _no_worker() -> Problem:
    hint = "wait a moment and try again"
    return Problem(code="no_worker", message="no worker is ready to run a query", hint=hint)
