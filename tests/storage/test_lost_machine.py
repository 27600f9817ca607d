"""A machine is lost with its disk: its flows go on at another one from `storage.url` in S3 or in HDFS."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.commands import PATIENCE_S, Penstock, family_of, wait_for
from tests.flows import json_rows
from tests.hdfs_server import Hdfs
from tests.s3_server import S3
from tests.storage import orders
from tests.storage.test_checkpoints import login, write_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 1_500

NAMES = ("minutes", "doubles")


class Fleet:
    """A server without workers, and two machines with one worker each."""

    def __init__(self, root: Path, env: Mapping[str, str], url: str, **properties: str) -> None:
        self.near = Penstock(root / "near")
        self.machines = {name: Penstock(root / name) for name in ("one", "two")}
        self.files = root / "files"
        for each in (self.near, *self.machines.values()):
            each.directory.mkdir()
            each.env |= {"PENSTOCK_POLICY_PATHS": str(root), **env}
            write_settings(each.directory, url, **properties)
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.client = httpx.Client(timeout=PATIENCE_S, trust_env=False)

    def up(self) -> None:
        """Start all of them."""
        up = self.near.start("up", "--port", "0", "--workers", "0")
        assert up.stdout is not None
        url = up.stdout.readline().split()[-1]
        token = self.near("worker", "token").stdout.strip()
        for name, machine in self.machines.items():
            self.workers[name] = machine.start("worker", "--server", url, "--token", token)
        self.client.base_url = httpx.URL(url)
        wait_for("the workers", lambda: len(self.client.get("/workers").json()) == 2)

    def holder(self, pipeline: str) -> str:
        """The machine that runs a pipeline."""
        worker = self.get(pipeline)["worker"]
        pids = {each["id"]: each["pid"] for each in self.client.get("/workers").json()}
        return next(name for name, process in self.workers.items() if process.pid == pids.get(worker))

    def lose(self, name: str) -> None:
        """Kill a machine's processes, and remove its disk."""
        for member in family_of(self.workers[name].pid):
            member.kill()
        self.workers[name].wait()
        shutil.rmtree(self.machines[name].directory)

    def create(self, document: dict[str, Any]) -> None:
        answer = self.client.post(f"/{document['kind'].lower()}s", json=document)
        assert answer.status_code == 201, answer.text

    def get(self, name: str) -> dict[str, Any]:
        answer = self.client.get(f"/pipelines/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def complete(self, name: str) -> None:
        wait_for(f"the end of {name}", lambda: self.get(name)["status"] in ("completed", "failed"))
        assert self.get(name)["status"] == "completed", self.get(name)["error"]

    def close(self) -> None:
        self.client.close()
        for each in (*self.machines.values(), self.near):
            each.kill_everything()


def goes_on(fleet: Fleet) -> None:
    """One pipeline on each machine; that of the window is lost in the middle of its events."""
    orders.make_stream(fleet, "orders", orders.SCHEMA)
    for first in range(0, COUNT, 500):
        orders.send(fleet, first, first + 500)
    for stream in ("minutes_out", "doubles_out"):
        orders.make_stream(fleet, stream)
    fleet.create(orders.windows_pipeline("minutes", "minutes_out"))
    fleet.create(orders.doubles_pipeline("doubles", "doubles_out", str(fleet.files)))
    wait_for("batches", lambda: fleet.get("minutes")["ops"].get("batches", 0) >= 2)
    lost = fleet.holder("minutes")
    before = fleet.get("minutes")["ops"]["batches"]
    assert before < COUNT // 100, "it was at work"
    fleet.lose(lost)
    for name in NAMES:
        fleet.complete(name)
    found = [json.loads(row) for row in orders.events_in(fleet, "minutes_out")]
    assert orders.found_windows(found) == orders.windows(COUNT)
    kept = [json.loads(row) for row in orders.events_in(fleet, "doubles_out")]
    for rows in (kept, json_rows(fleet.files)):
        assert sorted((row["n"], row["twice"]) for row in rows) == orders.doubles(COUNT)
    assert fleet.get("minutes")["ops"]["input_events"] <= COUNT + 100, "it has not begun again"


def test_flows_of_a_lost_machine_go_on_from_s3(object_store: S3, tmp_path: Path) -> None:
    url = f"s3a://{object_store.bucket()}/flows"
    fleet = Fleet(tmp_path, login(), url, **{"hadoop.fs.s3a.endpoint": object_store.url})
    try:
        fleet.up()
        goes_on(fleet)
    finally:
        fleet.close()


def test_flows_of_a_lost_machine_go_on_from_hdfs(hdfs: Hdfs, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, {}, f"{hdfs.directory()}/flows")
    try:
        fleet.up()
        goes_on(fleet)
    finally:
        fleet.close()
