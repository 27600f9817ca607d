"""A worker that has only the address of a server: tokens, leases, refusals, and a connection that is cut."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import Report
from penstock.control.fleet.control import Control, RegistryAway
from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.fleet.worker import Worker
from penstock.control.monitor.flow_logs import reader_of
from penstock.control.monitor.pulse import Pulse
from penstock.control.questions.addresses import needs_tls
from penstock.control.wire.client import Wire, home_id, wire_control
from penstock.control.wire.tokens import Tokens
from penstock.engine.delivery.ledger import Ledger
from penstock.engine.runtime.flow_log import FlowLog
from penstock.errors import Invalid, NotFound, PreconditionFailed, Suspended, Unauthorised, Unavailable
from penstock.frames.logs import LOGS
from penstock.settings import load
from penstock.streams.remote.messages import pack
from penstock.streams.storage import Cursor, Fenced, Producer
from tests.api.kit import Api, open_service, running, stream
from tests.cli.commands import wait_for
from tests.control.test_worker import NO_SPARK
from tests.flows import assign, pipeline, unassigned
from tests.streams.kit import events, values

LEASE_S, ANSWER_S = 4.0, 30.0


class Line:
    """A TCP proxy on loopback that can be cut: connections end, and new ones are refused."""

    def __init__(self, url: str) -> None:
        self._to = httpx.URL(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with contextlib.suppress(OSError):  # the other side may have closed it
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection((self._to.host, self._to.port))
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    home = tmp_path / "server"
    home.mkdir()
    with open_service(home) as service, running(service) as found:
        yield found


@pytest.fixture
def service(api: Api) -> Service:
    return api.service


def settings_of(home: Path, **options: Any) -> Any:
    return load(
        {"home": home, "worker.lease_ms": int(LEASE_S * 1000), **options}, env={}, cwd=home.parent
    ).settings


def control(api: Api, home: Path, token: str | None = None, url: str | None = None) -> Control:
    wire = Wire(url or api.url, token or Tokens(api.service.registry).make(), ANSWER_S)
    return wire_control(settings_of(home), wire)


@contextmanager
def working(worker: Worker) -> Iterator[list[Exception]]:
    errors: list[Exception] = []

    def run() -> None:
        try:
            worker.run()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        worker.stop()
        thread.join(20)
    assert not thread.is_alive()


def test_what_a_worker_needs_of_the_registry_comes_over_the_wire(api: Api, tmp_path: Path) -> None:
    service = api.service
    remote = control(api, tmp_path / "far")
    record = service.registry.create(pipeline("orders"))
    documents = remote.documents
    assert documents.get("Pipeline", "orders") == service.registry.get("Pipeline", "orders")
    assert documents.find("Pipeline", "nothing") is None
    with pytest.raises(NotFound, match="there is no pipeline 'nothing'"):
        documents.get("Pipeline", "nothing")
    assert documents.find_by_uid(record.uid) == service.registry.find_by_uid(record.uid)
    assert documents.list("Pipeline", limit=None) == service.registry.list("Pipeline", limit=None)
    assert documents.ids("Pipeline") == {"orders"}
    assert documents.versions([record.uid]) == service.registry.versions([record.uid])
    assert documents.revisions("Pipeline", "orders") == service.registry.revisions("Pipeline", "orders")
    assert documents.dependents("Pipeline", "orders") == []
    assert documents.mark() == documents.mark()
    flows = remote.flows
    flows.join("w", 7, "http://127.0.0.1:1", "t", 60.0, {"a": 1}, labels={"zone": "a"}, home=remote.home)
    (worker,) = service.flows.workers()
    assert (worker.pid, worker.labels, worker.info, worker.home) == (7, {"zone": "a"}, {"a": 1}, remote.home)
    assert flows.renew("w", 60.0, {"b": 2})
    assert assign(service.flows, record.uid, "w")
    (held,) = flows.assigned("w")
    assert held == service.flows.assigned("w")[0]
    before = flows.mark("w")
    flows.report("w", [Report(record.uid, 1, 1, "running", ops={"batches": 3})])
    assert flows.mark("w") == before, "its own report is no news"
    now = service.registry.get("Pipeline", "orders").flow
    assert now is not None
    assert (now.phase, now.ops, now.home) == ("running", {"batches": 3}, remote.home)


def test_every_write_over_the_wire_names_worker_and_epoch(api: Api, tmp_path: Path) -> None:
    service = api.service
    flows = control(api, tmp_path / "far").flows
    record = service.registry.create(pipeline("orders"))
    for name in ("old", "new"):
        flows.join(name, 1, "http://127.0.0.1:1", "t", 60.0, {}, home="h")
    assign(service.flows, record.uid, "old")
    service.flows.leave("old")
    assign(service.flows, record.uid, "new")
    service.registry.update("Pipeline", "orders", pipeline("orders", batch={"max_ms": 1}))
    before = service.registry.get("Pipeline", "orders")
    flows.report("old", [Report(record.uid, 1, 2, "idle", outcome="failed")])
    flows.report("new", [Report(record.uid, 1, 2, "idle", outcome="failed")])
    flows.release("old", record.uid, 1)
    flows.release("new", record.uid, 1, True)
    for worker, epoch in (("old", 1), ("old", 2), ("new", 1)):
        with pytest.raises(PreconditionFailed, match="no longer has"):
            flows.roll_back(worker, record.uid, epoch, 2, 1, {"code": "rolled_back"})
    assert not flows.renew("old", 60.0)
    assert service.registry.get("Pipeline", "orders") == before
    flows.roll_back("new", record.uid, 2, 2, 1, {"code": "rolled_back"})
    assert service.registry.get("Pipeline", "orders").revision == 3


@pytest.mark.parametrize("token", ["x", "nonsense.", "12345678.secret"])
def test_a_wrong_token_is_refused(api: Api, tmp_path: Path, token: str) -> None:
    remote = control(api, tmp_path / "far", token=token)
    with pytest.raises(Unauthorised, match="invalid or was revoked"):
        remote.documents.mark()
    assert httpx.post(f"{api.url}/wire/flows/workers", trust_env=False, timeout=60).status_code == 401
    assert "/wire" not in httpx.get(f"{api.url}/openapi.json", trust_env=False, timeout=60).text


def test_a_token_is_kept_as_a_hash_and_its_revocation_ends_its_workers(api: Api, tmp_path: Path) -> None:
    tokens = Tokens(api.service.registry)
    token, other = tokens.make("rack 7"), tokens.make()
    stored = (tmp_path / "server" / "registry.db").read_bytes() + b"".join(
        file.read_bytes() for file in (tmp_path / "server").glob("registry.db-*")
    )
    assert token.partition(".")[2].encode() not in stored
    assert [each.note for each in tokens.all()] == ["rack 7", ""]
    remote = control(api, tmp_path / "far", token=token)
    with working(Worker(settings_of(tmp_path / "far"), remote, NO_SPARK)) as errors:
        wait_for("the worker", api.service.flows.workers)
        tokens.revoke(token.partition(".")[0])
        wait_for("its end", lambda: errors)
    assert isinstance(errors[0], Unauthorised)
    control(api, tmp_path / "far", token=other).documents.mark()
    with pytest.raises(NotFound, match="no token"):
        tokens.revoke("12345678")


def test_a_call_that_does_not_fit_is_refused(api: Api) -> None:
    headers = {"Authorization": f"Bearer {Tokens(api.service.registry).make()}"}
    for path, status in (("flows/expire", 404), ("nothing/mark", 404), ("flows/renew", 422)):
        answer = httpx.post(
            f"{api.url}/wire/{path}", json={"x": 1}, headers=headers, trust_env=False, timeout=60
        )
        assert answer.status_code == status, path


def test_a_worker_that_cannot_reach_the_server_stops_its_flows_before_its_lease_ends(
    api: Api, tmp_path: Path
) -> None:
    line = Line(api.url)
    far = tmp_path / "far"
    worker = Worker(settings_of(far), control(api, far, url=line.url), NO_SPARK)
    aborted: list[float] = []
    worker._abort_all = lambda: aborted.append(time.monotonic())  # type: ignore[method-assign]
    worker._lease._on_lapse = worker._abort_all
    with working(worker):
        wait_for("the worker", api.service.flows.workers)
        first = worker._lease._until
        wait_for("a renewal", lambda: worker._lease._until > first)
        worker.permitted()
        aborted.clear()
        line.cut()
        cut_at = time.monotonic()
        wait_for("the end of the lease", lambda: api.service.flows.expire())
        with pytest.raises(Suspended, match="lease"):
            worker.permitted()
        wait_for("the end of its flows", lambda: aborted)
        assert cut_at < aborted[0] < cut_at + LEASE_S + 2
        with pytest.raises(Suspended, match="can't be reached"):
            worker.site(api.service.registry.create(pipeline("orders"))).stream("s")


def test_streams_of_the_server_are_used_over_the_wire_and_a_flow_keeps_its_own(
    api: Api, tmp_path: Path
) -> None:
    service = api.service
    far = tmp_path / "far"
    line = Line(api.url)
    worker = Worker(settings_of(far), control(api, far, url=line.url), NO_SPARK)
    service.registry.create(stream("raw"))
    record = service.registry.create(pipeline("p"))
    pushed = service.registry.create(pipeline("pushed", source={"type": "http", "path": "/x"}))
    site = worker.site(record)
    for number, name in enumerate(("raw", worker.site(pushed).input)):
        assert name is not None
        near, distant = service.streams.log(name), LOGS.log(site.stream(name).directory)
        assert near.append(events(3)).next == 3
        assert distant.append(events(2, first=3), producer=Producer("p", 0, epoch=2)).first == 3
        assert distant.append(events(2, first=3), producer=Producer("p", 0, epoch=2)).duplicate
        with pytest.raises(Fenced):
            distant.append(events(1), producer=Producer("p", 1, epoch=1))
        assert values(near) == values(distant) == [b"e%d" % each for each in range(5)]
        distant.move_cursor(Cursor("r", 4, epoch=number))
        assert [(c.reader, c.next) for c in near.storage.cursors()] == [("r", 4)]
        assert not distant.wait(5, 0.05)
        timer = threading.Timer(0.1, near.append, (events(1, first=5),))
        timer.start()
        assert distant.wait(5, 10)
        timer.join()
    assert not (far / "streams").exists(), "nothing was created on the wrong disk"
    assert site.stream(site.dead).directory.is_relative_to(far / "streams")
    distant = LOGS.log(site.stream("raw").directory)
    line.cut()
    with pytest.raises(Unavailable, match=r"on the server .*, which can't be reached"):
        distant.bounds()


def test_the_streams_of_a_server_are_not_for_others(api: Api, tmp_path: Path) -> None:
    record = api.service.registry.create(stream("raw"))
    token = Tokens(api.service.registry).make()

    def ask(path: str, given: str = token, body: bytes | None = None) -> int:
        headers = {"Authorization": f"Bearer {given}"}
        url, content = f"{api.url}/wire/streams/{path}", pack([]) if body is None else body
        return httpx.post(url, content=content, headers=headers, trust_env=False, timeout=60).status_code

    life = record.uid[:8]
    assert ask(f"raw/{life}/bounds") == 200
    assert ask(f"raw/{life}/bounds", given="12345678.wrong") == 401
    assert ask(f"raw/{life}/wait", given="x") == 401
    assert ask("raw/00000000/bounds") == 404, "another stream with its name"
    assert ask("none/00000000/bounds") == 404
    for body in (b"", b"1234567", pack([1, 2, 3]), pack({})):
        assert ask(f"raw/{life}/offset_at", body=body) == 422, body
    assert ask(f"raw/{life}/close") == 422, "no method of the wire"
    assert ask(f"raw/{life}/write", body=pack([[[[1, 1]], None, []]])) == 422


def test_streams_in_kafka_are_within_reach_of_a_worker_that_knows_the_cluster(
    api: Api, tmp_path: Path
) -> None:
    registry, far = api.service.registry, tmp_path / "far"
    registry.create(stream("clicks", storage="kafka"))
    site_of = registry.create(pipeline("p"))
    without = Worker(settings_of(far), control(api, far), NO_SPARK)
    with pytest.raises(Invalid) as raised:
        without.site(site_of).stream("clicks")
    assert raised.value.problems[0].code == "no_kafka"
    wire = Wire(api.url, Tokens(registry).make(), ANSWER_S)
    settings = settings_of(far, **{"kafka.brokers": "127.0.0.1:9"})
    worker = Worker(settings, wire_control(settings, wire), NO_SPARK)
    place = worker.site(site_of).stream("clicks")
    assert (place.spec.storage, place.directory.is_relative_to(far)) == ("kafka", True)


def test_progress_binds_a_flow_to_its_home(api: Api, tmp_path: Path) -> None:
    service = api.service
    record = service.registry.create(pipeline("p"))
    for name, home in (("far", "h"), ("near", "")):
        service.flows.join(name, 1, "http://127.0.0.1:1", "t", 60.0, {}, home=home)
    assert assign(service.flows, record.uid, "far")
    service.flows.leave("far")
    service.coordinator.step()
    flow = service.registry.get("Pipeline", "p").flow
    assert flow is not None
    assert flow.waits_for is not None
    assert (flow.worker, flow.waits_for["code"]) == (None, "progress_elsewhere")
    service.flows.join("far again", 1, "http://127.0.0.1:1", "t", 60.0, {}, home="h")
    service.coordinator.step()
    flow = service.registry.get("Pipeline", "p").flow
    assert flow is not None
    assert flow.worker == "far again"
    service.flows.release("far again", record.uid, flow.epoch, untouched=True)
    service.flows.leave("far again")
    service.coordinator.step()
    flow = service.registry.get("Pipeline", "p").flow
    assert flow is not None
    assert flow.worker == "near", "it had left nothing behind"
    assert unassigned(service.flows) == []


def test_questions_to_another_machine_are_encrypted_and_the_certificate_is_pinned(
    api: Api, tmp_path: Path
) -> None:
    service, far = api.service, tmp_path / "far"
    assert [
        needs_tls(each) for each in ("127.0.0.1", "localhost:80", "[::1]:80", "0.0.0.0", "10.0.0.1:7")
    ] == [*(False, False, False, True, True)]
    settings = settings_of(far, **{"worker.bind": "0.0.0.0"})
    worker = Worker(settings, control(api, far), NO_SPARK)
    with working(worker):
        (found,) = wait_for("the worker", service.flows.workers)
        assert found.url.startswith("https://")
        assert "BEGIN CERTIFICATE" in (found.certificate or "")
        local = replace(found, url=found.url.replace("0.0.0.0", "127.0.0.1"))
        assert service.rpc.restart(local, "no flow", 1.0) is False
        answer = service.rpc._post(local, "/catch-up", 5.0, {"uid": "u", "sink": "s"})
        assert answer.json() is False
        other = tmp_path / "other.crt"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        command += [
            "-nodes",
            "-subj",
            "/CN=penstock-worker",
            "-keyout",
            str(tmp_path / "k"),
            "-out",
            str(other),
        ]
        subprocess.run(command, check=True, capture_output=True)
        with pytest.raises(httpx.ConnectError):
            service.rpc._post(replace(local, certificate=other.read_text()), "/catch-up", 5.0, {})


def test_what_the_server_shows_of_a_flow_elsewhere_comes_from_its_worker(api: Api, tmp_path: Path) -> None:
    service, far = api.service, tmp_path / "far"
    record = service.registry.create(pipeline("p", sinks=[{"id": "out", "type": "drop"}]))
    remote = control(api, far)
    remote.flows.join("ghost", 1, "http://127.0.0.1:1", "t", 60.0, {}, home=remote.home)
    assert assign(service.flows, record.uid, "ghost")
    counted = {"out": {"state": "failing", "events": 0, "batches": 0, "failures": 1}}
    remote.flows.report("ghost", [Report(record.uid, 1, 1, "running", ops={"sinks": counted})])
    service.flows.leave("ghost")
    for what in ("logs", "sinks", "dead-letters"):
        assert api.client.get(f"/pipelines/p/{what}").json()["code"] == "worker_away"
    worker = Worker(settings_of(far), remote, NO_SPARK)
    directory = flow_directory(worker.settings, record)
    log = FlowLog(flow_name(record), directory)
    log.begin()
    log.warning("written far away")
    ledger = Ledger(directory)
    ledger.failed("out", "it does not fit")
    ledger.close()
    with working(worker):
        wait_for("the worker", service.flows.workers)
        lines = api.client.get("/pipelines/p/logs").json()["lines"]
        assert [line["message"] for line in lines] == ["written far away"]
        (sink,) = api.client.get("/pipelines/p/sinks").json()
        assert (sink["state"], sink["last_error"]) == ("failing", "it does not fit")
        assert api.client.get("/pipelines/p/dead-letters").json()["letters"] == []
        assert api.client.get("/pipelines/p/dead-letters/0").status_code == 404
        reader = reader_of(service, "Pipeline", "p", "debug")
        assert [line.message for line in reader.look()] == ["written far away"]
        log.info("more")
        assert [line.message for line in reader.look()] == ["more"], "each line once"
        (pulse,) = Pulse(service).look().look.flows.values()
        assert [sink.state for sink in pulse.sinks] == ["failing"], "as its last worker has reported it"
    assert not flow_directory(service.settings, record).exists(), "nothing of it is on the server's disk"


def test_a_home_keeps_its_id(tmp_path: Path) -> None:
    assert home_id(tmp_path / "a") == home_id(tmp_path / "a") != home_id(tmp_path / "b")


def test_a_server_that_is_away_is_no_refusal(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    remote = wire_control(settings_of(tmp_path / "far"), Wire(f"http://127.0.0.1:{port}", "t", 1.0))
    with pytest.raises(RegistryAway, match="can't be reached"):
        remote.documents.mark()


def test_a_request_that_is_cut_off_is_no_error_of_the_server(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    url, token = httpx.URL(api.url), Tokens(api.service.registry).make()
    head = f"POST /wire/flows/renew HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n[".encode())
        time.sleep(0.5)  # until the server waits for the rest
    time.sleep(0.5)
    assert httpx.get(f"{api.url}/healthz", trust_env=False, timeout=60).status_code == 200
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [record.getMessage() for record in errors if record.name.startswith("uvicorn")] == []
