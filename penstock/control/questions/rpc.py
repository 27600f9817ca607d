"""Requests that only a process with Spark can answer: an HTTP server in the worker, and its client."""

from __future__ import annotations

import contextlib
import functools
import hmac
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import uvicorn
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from penstock.connectors.probe import Probe
from penstock.control.documents.context import context_of
from penstock.control.documents.edits import FlowPlan, Planner
from penstock.control.events.letters_here import Letters, LettersHere
from penstock.control.fleet.assignments import WorkerInfo
from penstock.control.questions.addresses import bound_socket, certificate_files, needs_tls, pinned
from penstock.control.questions.connections import ProbeRequest, connection_routes
from penstock.control.questions.flow_files import FilesHere, FlowFiles
from penstock.control.questions.letter_replay import ReplayAnswer, ReplayRequest, redelivery_routes
from penstock.control.questions.limits import DEADLINE, GRACE_S, Refusal
from penstock.control.questions.trial_worker import TestAnswer, TestRequest, test_routes
from penstock.control.wire.methods import methods_of, proxy
from penstock.engine.plan.analysis import Analysis, analyse
from penstock.engine.plan.shapes import Shapes
from penstock.engine.runtime.sql_queries import Queries, QueryResult
from penstock.errors import Conflict, Invalid, NotFound, PenstockError, Problem, Unavailable
from penstock.policy import Policy
from penstock.spark.driver import jvm_of
from penstock.sql.described import FunctionInfo, described

if TYPE_CHECKING:
    from penstock.control.fleet.worker import Worker

A = TypeVar("A")

EACH_S = 0.5
"""Seconds for the analysis of each document of a bundle, beyond the deadline of a question."""
SLACK_S = 10.0
"""Seconds beyond the deadline of a question to wait for its answer; then its process counts as hung."""
POKE_TIMEOUT_S = 2.0
REPLAY_S = 600.0
RESTART_GRACE_S = 15.0
"""Seconds beyond the drain timeout to wait for a worker's response."""
JUDGED_AT_ONCE = 2
"""Documents validated at the same time: each takes a core, and as many processes as the start of a flow."""
KEPT_S = 15.0
"""Seconds to wait for files of a flow."""
REFUSALS: tuple[type[PenstockError], ...] = (Invalid, NotFound, Conflict)


BY_SPARK = {"/analyse", "/functions", "/plan", "/query", "/test", "/probe", "/letters/replay"}
"""Questions that need a Spark session."""


class AnalyseRequest(BaseModel):
    """Documents to validate. They may refer to each other, and to registered documents unless `alone`."""

    documents: list[Any]
    alone: bool = False
    only: list[int] | None = None
    """Indexes of the documents to validate; the others are only referred to. None: all of them."""
    number: str | None = None
    """The id for requests about the progress."""


class PlanRequest(BaseModel):
    """Documents that would replace the documents of the same name."""

    documents: list[Any]


class CatchUpRequest(BaseModel):
    """A sink of a flow that is to retry."""

    uid: str
    sink: str


class RestartRequest(BaseModel):
    """A flow whose run is to end, so that a new run starts."""

    uid: str


class QueryRequest(BaseModel):
    """A SQL query over streams."""

    sql: str
    limit: int
    timeout_s: float
    id: str
    """The id for canceling the query."""


class Named(BaseModel):
    """The id of a question in progress, to request its progress or cancel it."""

    id: str


class QueryAnswer(BaseModel):
    """The result of a query, or the reason why it was rejected."""

    result: QueryResult | None = None
    status: int = 200
    problems: list[Problem] = []


class RpcServer:
    """Serves a worker's answers on the address of its settings, to clients that know its token."""

    def __init__(self, worker: Worker) -> None:
        settings = worker.settings.worker
        self._socket = bound_socket(settings.bind)  # requests wait for the server, and are not refused
        address, port = self._socket.getsockname()[:2]
        files = certificate_files(worker.settings) if needs_tls(settings.bind) else None
        self.certificate = files.certificate.read_text() if files else None
        host = f"[{address}]" if ":" in address else address
        self.url = settings.advertise or f"{'https' if files else 'http'}://{host}:{port}"
        config = uvicorn.Config(
            worker.limited(_app(worker)),
            log_level="warning",
            access_log=False,
            lifespan="off",
            ssl_certfile=files.certificate if files else None,
            ssl_keyfile=files.key if files else None,
        )
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._serve, name="rpc", daemon=True)

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _app(worker: Worker) -> FastAPI:
    def authorised(request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given, f"Bearer {worker.token}"):
            raise HTTPException(401)
        if worker.is_stopping and request.url.path in BY_SPARK:
            raise HTTPException(503)  # its session is ending: another worker has to answer

    app = FastAPI(openapi_url=None, dependencies=[Depends(authorised)])

    judging = CapacityLimiter(JUDGED_AT_ONCE)

    async def judged(judge: Callable[[], A]) -> A:
        """Run an interactive request; no flow starts meanwhile."""
        with worker.turns.hold():
            return await to_thread.run_sync(judge, limiter=judging)

    # Runs in the event loop: a poke needs no thread, and must not wait for one.
    @app.post("/poke", status_code=204)
    async def poke() -> None:
        worker.poke()

    @app.post("/catch-up")
    def catch_up(request: CatchUpRequest) -> bool:
        return worker.catch_up(request.uid, request.sink)

    @app.post("/restart")
    def restart(request: RestartRequest) -> bool:
        return worker.restart(request.uid)

    analysed = Counter[str]()

    @app.post("/analyse")
    async def analyse_(request: AnalyseRequest) -> list[Analysis]:
        try:
            return await judged(lambda: _analyse(worker, request, analysed))
        finally:
            analysed.pop(str(request.number), None)

    @app.post("/analysed")
    async def analysed_(request: Named) -> int:
        return analysed[request.id]

    @app.post("/functions")
    def functions() -> list[FunctionInfo]:
        return list(described(jvm_of(worker.spark)))

    @app.post("/plan")
    async def plan(request: PlanRequest) -> list[FlowPlan]:
        planner = Planner(worker.settings, worker.registry, worker.streams, worker.spark)
        return await judged(lambda: planner.plans(request.documents))

    parts: dict[str, tuple[Callable[..., object], Any]] = {
        "files": (FlowFiles, FilesHere(worker.settings, worker.registry, worker.spark)),
        "letters": (Letters, LettersHere(worker.settings, worker.registry, worker.streams)),
    }

    @app.post("/kept/{part}/{name}")
    async def kept(part: str, name: str, request: Request) -> Response:
        protocol, target = parts[part]
        method, body = methods_of(protocol)[name], await request.body()
        try:
            answer = await run_in_threadpool(method.call, target, body)
        except PenstockError as error:
            refusal = Refusal(problems=error.problems)
            return Response(refusal.model_dump_json(), error.status, media_type="application/json")
        return Response(answer, media_type="application/json")

    app.include_router(redelivery_routes(worker))
    app.include_router(test_routes(worker))
    app.include_router(connection_routes(worker))
    queries = functools.cache(lambda: Queries(worker.spark, lambda: {s.id: s for s in worker.streams.all()}))

    under_way: dict[str, threading.Event] = {}

    @app.post("/query")
    async def query(request: QueryRequest) -> QueryAnswer:
        stop = under_way[request.id] = threading.Event()
        try:
            result = await run_in_threadpool(
                lambda: queries().run(request.sql, request.limit, request.timeout_s, stop)
            )
        except PenstockError as error:
            return QueryAnswer(status=error.status, problems=error.problems)
        finally:
            under_way.pop(request.id, None)
        return QueryAnswer(result=result)

    @app.post("/query/cancel")
    async def cancel(request: Named) -> bool:
        stop = under_way.get(request.id)
        if stop is not None:
            stop.set()
        return stop is not None

    return app


def _analyse(worker: Worker, request: AnalyseRequest, analysed: Counter[str]) -> list[Analysis]:
    lookup, known = context_of(request.documents, worker.registry, alone=request.alone)
    settings, policy = worker.settings, Policy.of(worker.settings)
    defaults, allow_python = settings.defaults.model_dump(), settings.allow_python
    chosen = range(len(request.documents)) if request.only is None else request.only
    session = worker.spark.newSession() if chosen and worker.spark is not None else None  # one for all
    judge = functools.partial(
        analyse, policy=policy, allow_python=allow_python, shapes=Shapes() if session is not None else None
    )
    return [
        judge(request.documents[i], lookup, known, defaults, session)
        for i in _counted(chosen, analysed, request.number)
    ]


def _counted(places: Iterable[int], analysed: Counter[str], number: str | None) -> Iterator[int]:
    """The indexes, counted as they are processed."""
    for place in places:
        yield place
        if number is not None:
            analysed[number] += 1


class QuestionFailed(PenstockError):
    """A question that failed: by its deadline, for lack of memory, or with the process that had it."""

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__(*problems)
        self.status = status


def _refusal(answer: httpx.Response) -> Refusal | None:
    """The reasons in an error response of a worker; None if it has none, as from a worker shutting down."""
    with contextlib.suppress(ValueError):
        return Refusal.model_validate_json(answer.content)
    return None


class RpcClient:
    """Sends requests to workers."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._patience_s = deadline_s + GRACE_S + SLACK_S
        self._http = httpx.Client(trust_env=False)
        self._pinned: dict[str, httpx.Client] = {}
        """Clients for workers on other machines, by the certificate that each of them trusts."""

    def analyse(
        self,
        worker: WorkerInfo,
        documents: list[Any],
        *,
        alone: bool,
        only: list[int],
        number: str | None = None,
    ) -> list[Analysis]:
        """The analyses of the documents at the indexes `only` by a worker."""
        body = {"documents": documents, "alone": alone, "only": only, "number": number}
        more_s = len(only) * EACH_S
        deadline = {DEADLINE: str(self._deadline_s + more_s)}
        answer = self._post(worker, "/analyse", self._patience_s + more_s, body, headers=deadline)
        return [Analysis.model_validate(item) for item in answer.json()]

    def analysed(self, worker: WorkerInfo, number: str) -> int:
        """The number of documents of an analysis that are done; 0 if the worker is not responding."""
        try:
            return int(self._post(worker, "/analysed", POKE_TIMEOUT_S, {"id": number}).json())
        except httpx.HTTPError:
            return 0

    def plan(self, worker: WorkerInfo, documents: list[Any]) -> list[FlowPlan]:
        """The effects on flows if these documents were saved."""
        answer = self._post(worker, "/plan", self._patience_s, {"documents": documents})
        return [FlowPlan.model_validate(item) for item in answer.json()]

    def functions(self, worker: WorkerInfo) -> list[FunctionInfo]:
        """The functions that SQL may call."""
        answer = self._post(worker, "/functions", self._patience_s)
        return [FunctionInfo.model_validate(item) for item in answer.json()]

    def catch_up(self, worker: WorkerInfo, uid: str, sink: str) -> bool:
        """Make a sink of a flow retry now; false if the worker doesn't run the flow or isn't responding."""
        try:
            answer = self._post(worker, "/catch-up", POKE_TIMEOUT_S, {"uid": uid, "sink": sink})
        except httpx.HTTPError:
            return False
        return bool(answer.json())

    def restart(self, worker: WorkerInfo, uid: str, drain_s: float) -> bool:
        """Restart the run of a flow; false if the worker no longer has the flow or isn't responding."""
        try:
            answer = self._post(worker, "/restart", drain_s + RESTART_GRACE_S, {"uid": uid})
        except httpx.HTTPError:
            return False
        return bool(answer.json())

    def query(self, worker: WorkerInfo, request: QueryRequest) -> QueryAnswer:
        """The result of a query on a worker."""
        deadline = {DEADLINE: str(request.timeout_s)}
        timeout = request.timeout_s + GRACE_S + SLACK_S
        answer = self._post(worker, "/query", timeout, request.model_dump(), deadline)
        return QueryAnswer.model_validate(answer.json())

    def cancel(self, worker: WorkerInfo, query: str) -> bool:
        """Cancel a query; false if the worker doesn't run the query or isn't responding."""
        try:
            answer = self._post(worker, "/query/cancel", POKE_TIMEOUT_S, {"id": query})
        except httpx.HTTPError:
            return False
        return bool(answer.json())

    def replay(self, worker: WorkerInfo, request: ReplayRequest) -> ReplayAnswer:
        """The result of a replay of dead letters on a worker."""
        body = request.model_dump()
        return ReplayAnswer.model_validate(self._post(worker, "/letters/replay", REPLAY_S, body).json())

    def test(self, worker: WorkerInfo, request: TestRequest) -> TestAnswer:
        """The result of a test run on a worker."""
        answer = self._post(worker, "/test", self._patience_s, request.model_dump())
        return TestAnswer.model_validate(answer.json())

    def probe(self, worker: WorkerInfo, request: ProbeRequest) -> Probe:
        """The result of a connection test on a worker."""
        answer = self._post(worker, "/probe", self._patience_s, request.model_dump())
        return Probe.model_validate(answer.json())

    def files(self, worker: WorkerInfo) -> FlowFiles:
        """The files of flows that a worker stores."""
        return proxy(FlowFiles, functools.partial(self._ask, worker, "files"))

    def letters(self, worker: WorkerInfo) -> Letters:
        """The dead letters that a worker stores."""
        return proxy(Letters, functools.partial(self._ask, worker, "letters"))

    def _ask(self, worker: WorkerInfo, part: str, name: str, body: bytes) -> bytes:
        headers = {"Authorization": f"Bearer {worker.token}", "Content-Type": "application/json"}
        url = f"{worker.url}/kept/{part}/{name}"
        try:
            answer = self._client(worker.certificate).post(url, content=body, headers=headers, timeout=KEPT_S)
        except httpx.HTTPError:
            message = f"worker {worker.id[:8]}, which has the files of this flow, is not responding"
            raise Unavailable(Problem(code="worker_away", message=message)) from None
        kind = next((cls for cls in REFUSALS if cls.status == answer.status_code), None)
        if kind is not None:
            raise kind(*Refusal.model_validate_json(answer.content).problems)
        answer.raise_for_status()
        return answer.content

    def poke(self, worker: WorkerInfo) -> None:
        """Make a worker check the registry now, rather than at its next tick."""
        with contextlib.suppress(httpx.HTTPError):
            self._post(worker, "/poke", POKE_TIMEOUT_S)

    def _post(
        self,
        worker: WorkerInfo,
        path: str,
        timeout: float,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        authorised = {"Authorization": f"Bearer {worker.token}", **(headers or {})}
        answer = self._client(worker.certificate).post(
            worker.url + path, json=body, timeout=timeout, headers=authorised
        )
        if answer.is_error and (given := _refusal(answer)) is not None:
            raise QuestionFailed(answer.status_code, given.problems)
        answer.raise_for_status()
        return answer

    def _client(self, certificate: str | None) -> httpx.Client:
        if certificate is None:
            return self._http
        if certificate not in self._pinned:
            self._pinned[certificate] = httpx.Client(trust_env=False, verify=pinned(certificate))
        return self._pinned[certificate]
