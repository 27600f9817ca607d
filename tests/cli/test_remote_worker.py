"""`penstock worker --server`: a worker process with a home of its own, against a server with TLS."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.control.questions.addresses import pinned
from tests.cli.commands import PATIENCE_S, Penstock, interrupt, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COUNT = 500


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate of this machine, signed by itself, and its key."""
    files = directory / "server.crt", directory / "server.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*command, "-out", str(files[0]), "-keyout", str(files[1])], check=True, capture_output=True
    )
    return files


def test_a_worker_with_nothing_but_the_address_of_a_server_runs_a_flow(tmp_path: Path) -> None:
    crt, key = certificate(tmp_path)
    near, far = Penstock(tmp_path / "near"), Penstock(tmp_path / "far")
    for each in (near, far):
        each.directory.mkdir()
        each.env |= {"PENSTOCK_POLICY_PATHS": str(tmp_path)}
    near.env |= {"PENSTOCK_TLS_CERTIFICATE": str(crt), "PENSTOCK_TLS_KEY": str(key)}
    far.env |= {
        "PENSTOCK_REGISTRY_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "PENSTOCK_WORKER_BIND": "0.0.0.0",
    }
    try:
        up = near.start("up", "--port", "0", "--workers", "0")
        assert up.stdout is not None
        url = up.stdout.readline().split()[-1]
        assert url.startswith("https://")
        token = near("worker", "token", "--note", "far").stdout.strip()
        refused = far("worker", "--server", url, "--token", "12345678.wrong", "--ca-file", str(crt))
        assert (refused.returncode, "unauthorised" in refused.stderr) == (1, True), refused.stderr
        _runs(near, far, url, token, crt, tmp_path)
        assert interrupt(up, signal.SIGTERM)
        assert up.returncode == 0
    finally:
        far.kill_everything()
        near.kill_everything()


def test_flows_of_a_lost_machine_go_on_at_another_one(tmp_path: Path) -> None:
    """Two workers without a common home, but with a directory that both see: one is killed."""
    shared = tmp_path / "shared"
    near = Penstock(tmp_path / "near")
    machines = [Penstock(tmp_path / name) for name in ("one", "two")]
    for each in (near, *machines):
        each.directory.mkdir()
    for each in (near, *machines):
        each.env |= {"PENSTOCK_STORAGE_URL": str(shared / "flows"), "PENSTOCK_STORAGE_SHARED": str(shared)}
    try:
        up = near.start("up", "--port", "0", "--workers", "0")
        assert up.stdout is not None
        url = up.stdout.readline().split()[-1]
        token = near("worker", "token").stdout.strip()
        workers = [each.start("worker", "--server", url, "--token", token) for each in machines]
        with httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False) as client:
            wait_for("the workers", lambda: len(client.get("/workers").json()) == 2)
            _survives(client, {worker.pid: worker for worker in workers}, shared / "out")
    finally:
        for each in (*machines, near):
            each.kill_everything()


def _survives(client: httpx.Client, workers: dict[int, subprocess.Popen[str]], out: Path) -> None:
    _create(client, {"kind": "Stream", "metadata": {"name": "numbers"}})
    to_stream = [{"type": "stream", "stream": "numbers"}]
    spec: dict[str, Any] = {"source": {"type": "http", "path": "/in"}, "sinks": to_stream}
    _create(client, {"kind": "Pipeline", "metadata": {"name": "receiver"}, "spec": spec})
    wanted = "SELECT CAST(get_json_object(CAST(value AS STRING), '$.n') AS BIGINT) AS n FROM input"
    cast = [{"type": "sql", "query": f"SELECT CAST(1 / (n - 7) AS BIGINT) * 0 + n AS n FROM ({wanted})"}]
    to_files = [{"type": "file", "path": str(out), "format": "json"}]
    spec = {"source": {"type": "stream", "stream": "numbers"}, "processors": cast, "sinks": to_files}
    _create(client, {"kind": "Pipeline", "metadata": {"name": "writer"}, "spec": spec})

    def written() -> list[int]:
        return sorted(json.loads(line)["n"] for file in out.rglob("*.json") for line in file.open())

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            assert client.post("/ingest/in", json={"n": number}).status_code in (200, 202)

    send(0, 50)
    wait_for("the first events", lambda: len(written()) >= 49)
    worker = client.get("/pipelines/writer").json()["worker"]
    (lost,) = [each for each in client.get("/workers").json() if each["id"] == worker]
    send(50, 60)
    workers[lost["pid"]].kill()
    send(60, 100)
    rest = [number for number in range(100) if number != 7]
    wait_for("all events", lambda: len(written()) >= len(rest))
    assert written() == rest, "nothing is lost, and nothing is there twice"
    letters = client.get("/pipelines/writer/dead-letters").json()["letters"]
    assert len(letters) == 1, "the letter was written by the other machine"
    assert client.get("/pipelines/writer").json()["worker"] != worker


def _runs(near: Penstock, far: Penstock, url: str, token: str, crt: Path, tmp_path: Path) -> None:
    worker = far.start(
        "worker", "--server", url, "--token", token, "--ca-file", str(crt), "--label", "zone=b"
    )
    with httpx.Client(
        base_url=url, verify=pinned(crt.read_text()), timeout=PATIENCE_S, trust_env=False
    ) as client:
        (found,) = wait_for("the worker", lambda: client.get("/workers").json())
        assert (found["pid"], found["labels"]) == (worker.pid, {"zone": "b"})
        out = tmp_path / "out"
        spec: dict[str, Any] = {
            "source": {"type": "generate", "count": COUNT},
            "sinks": [{"id": "out", "type": "file", "path": str(out), "format": "json"}],
            "placement": {"labels": {"zone": "b"}},
        }
        _create(client, {"kind": "Pipeline", "metadata": {"name": "numbers"}, "spec": spec})
        wait_for("its end", lambda: client.get("/pipelines/numbers").json()["status"] == "completed")
        seen = sorted(json.loads(line)["seq"] for file in out.rglob("*.json") for line in file.open())
        assert seen == list(range(COUNT))
        lines = client.get("/pipelines/numbers/logs").json()["lines"]
        assert "completed: end of input reached" in [line["message"] for line in lines]
        (sink,) = client.get("/pipelines/numbers/sinks").json()
        assert (sink["state"], sink["last_ack_at"] is not None) == ("in_sync", True)
        assert not (near.home / "flows").exists(), "its progress is where its worker is"
        assert list((far.home / "flows" / "numbers").rglob("ledger.db"))

        _uses_streams_of_the_server(client, near, far)
        (listed,) = near.json("worker", "ls", "--server", url)["items"]
        assert listed["state"] == "ready"
        assert near("worker", "revoke", token).returncode == 0
        _, errors = worker.communicate(timeout=PATIENCE_S)
        assert (worker.returncode, "revoked" in errors) == (1, True), errors


def _uses_streams_of_the_server(client: httpx.Client, near: Penstock, far: Penstock) -> None:
    """Events that are pushed to the server, and a stream on its disk, as input and output of a far flow."""
    for name in ("raw", "doubled"):
        schema = "n BIGINT NOT NULL" if name == "doubled" else None
        _create(client, {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": schema}})
    to_raw = [{"type": "stream", "stream": "raw"}]
    spec: dict[str, Any] = {"source": {"type": "http", "path": "/in"}, "sinks": to_raw}
    _create(client, {"kind": "Pipeline", "metadata": {"name": "receiver"}, "spec": spec})
    double = "SELECT 2 * CAST(get_json_object(CAST(value AS STRING), '$.n') AS BIGINT) AS n FROM input"
    spec = {
        "source": {"type": "stream", "stream": "raw"},
        "processors": [{"type": "sql", "query": double}],
        "sinks": [{"type": "stream", "stream": "doubled"}],
    }
    _create(client, {"kind": "Pipeline", "metadata": {"name": "doubler"}, "spec": spec})
    for number in range(100):
        answer = client.post("/ingest/in", json={"n": number})
        assert answer.status_code in (200, 202), answer.text

    def doubled() -> list[int]:
        found = client.get("/streams/doubled/events", params={"limit": 1000}).json()["events"]
        return [event["columns"]["n"] for event in found]

    wait_for("all events", lambda: len(doubled()) >= 100)
    assert doubled() == [2 * number for number in range(100)]
    for name in ("receiver", "doubler"):
        view = client.get(f"/pipelines/{name}").json()
        assert view["error"] is None, view
    assert not (far.home / "streams" / "raw").exists(), "the events are on the server's disk"
    assert list((near.home / "streams" / "raw").rglob("*.log"))

    def cursors() -> list[int]:
        return [reader["cursor"] for reader in client.get("/streams/raw/stats").json()["readers"]]

    wait_for("the cursor, which moves after the delivery", lambda: cursors() == [100])


def _create(client: httpx.Client, document: dict[str, Any]) -> None:
    answer = client.post(f"/{document['kind'].lower()}s", json=document)
    assert answer.status_code == 201, answer.text
