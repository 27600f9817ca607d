"""Checkpoints and state at `storage.url` in S3 and in HDFS, through a kill -9 of the worker."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.commands import wait_for
from tests.flows import json_rows
from tests.hdfs_server import Hdfs
from tests.product import Product
from tests.s3_server import PASSWORD, S3, USER
from tests.storage import orders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT, BATCH = 1_500, 100

NAMES = ("minutes", "doubles")


def write_settings(directory: Path, url: str, **properties: str) -> None:
    """Let Penstock in a directory keep checkpoints at a URL."""
    chosen = {"driver.memory": "700m", **properties}
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in chosen.items()]
    (directory / "penstock.toml").write_text("\n".join([f'[storage]\nurl = "{url}"\n[spark]', *lines, ""]))


def login(password: str = PASSWORD) -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": password}


def complete(product: Product, name: str) -> None:
    """Wait until a pipeline has read all orders."""
    wait_for(f"the end of {name}", lambda: product.get(name)["status"] in ("completed", "failed"))
    assert product.get(name)["status"] == "completed", product.get(name)["error"]


def survives_a_kill(directory: Path, env: Mapping[str, str]) -> None:
    """Two pipelines are in the middle of their events when their worker is killed."""
    product = Product(directory, env=dict(env))
    try:
        product.up()
        orders.make_stream(product, "orders", orders.SCHEMA)
        for first in range(0, COUNT, 500):
            orders.send(product, first, first + 500)
        for stream in ("minutes_out", "doubles_out"):
            orders.make_stream(product, stream)
        files = directory / "files"
        product.create(orders.windows_pipeline("minutes", "minutes_out"))
        product.create(orders.doubles_pipeline("doubles", "doubles_out", str(files)))
        for name in NAMES:
            wait_for(f"batches of {name}", lambda name=name: product.get(name)["ops"].get("batches", 0) >= 2)
        time.sleep(random.uniform(0, 1))
        product.kill_worker()
        assert product.get("minutes")["ops"]["batches"] < COUNT // BATCH, "it was at work"
        for name in NAMES:
            complete(product, name)
        found = [json.loads(row) for row in orders.events_in(product, "minutes_out")]
        assert orders.found_windows(found) == orders.windows(COUNT)
        kept = [json.loads(row) for row in orders.events_in(product, "doubles_out")]
        for rows in (kept, json_rows(files)):
            assert sorted((row["n"], row["twice"]) for row in rows) == orders.doubles(COUNT)
        for name in NAMES:
            again = product.get(name)["ops"]["input_events"] - COUNT
            assert again <= BATCH, "the second run went on where the first was, from its state"
        flows = product.runner.home / "flows"
        assert not [path for path in flows.rglob("*") if path.name in ("offsets", "state")], "all are remote"
        assert product.down() == 0
    finally:
        product.close()


def test_checkpoints_in_s3_survive_a_kill(object_store: S3, tmp_path: Path) -> None:
    bucket = object_store.bucket()
    write_settings(tmp_path, f"s3a://{bucket}/flows", **{"hadoop.fs.s3a.endpoint": object_store.url})
    survives_a_kill(tmp_path, login())
    flows = object_store.path(bucket) / "flows"
    (commits,) = flows.glob("minutes/*/*/commits")
    numbers = sorted(int(file.name) for file in commits.iterdir())
    assert numbers == list(range(numbers[-1] + 1)), "one checkpoint, each batch once"
    assert list(flows.glob("minutes/*/*/state/0/*/*"))
    assert not [file for file in flows.rglob("*") if file.name.endswith(".tmp")]


def test_a_server_shows_why_its_worker_cannot_use_the_storage(object_store: S3, tmp_path: Path) -> None:
    write_settings(tmp_path, "s3a://no-such-bucket/flows", **{"hadoop.fs.s3a.endpoint": object_store.url})
    product = Product(tmp_path, env=login())
    try:
        product.listen()
        wait_for("the reason", lambda: "bucket_not_found" in product.client.get("/readyz").text)
        answer = product.client.get("/readyz").text
        assert "storage.url" in answer
        assert "Traceback" not in answer
        assert PASSWORD not in (product.runner.home / "logs" / "worker-1.log").read_text()
    finally:
        product.close()


def test_checkpoints_in_hdfs_survive_a_kill(hdfs: Hdfs, tmp_path: Path) -> None:
    write_settings(tmp_path, f"{hdfs.directory()}/flows")
    survives_a_kill(tmp_path, {})
