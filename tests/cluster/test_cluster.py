"""Pipelines on a real Spark cluster whose workers see neither the driver's disk nor its checkout."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Penstock, wait_for
from tests.cluster import orders
from tests.flows import json_rows
from tests.java import QUICK
from tests.product import Product
from tests.spark_cluster import SparkCluster
from tests.streams.kit import NIGHTLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 4_000

KEPT = f"{orders.SCHEMA}, twice BIGINT, name STRING"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster.run() as started:
        yield started


@pytest.fixture(scope="module")
def product(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Penstock with a worker whose Spark is the cluster; all orders are in the stream `orders`."""
    directory = tmp_path_factory.mktemp("driver")
    write_settings(directory, cluster)
    # Documents may name what is below `storage.shared`, as by default.
    started = Product(directory, env={"PENSTOCK_POLICY_PATHS": ""})
    try:
        started.up()
        send(started, "orders", orders.SCHEMA, COUNT)
        orders.write_customers(cluster.shared / "customers.csv")
        yield started
    finally:
        started.close()


def write_settings(directory: Path, cluster: SparkCluster, **changes: str) -> None:
    """Let Penstock in a directory use the cluster."""
    properties = {
        "master": cluster.url,
        "pyspark.python": str(cluster.python),
        "driver.memory": "700m",
        "executor.memory": "640m",
        "executor.extraJavaOptions": QUICK,
        "sql.shuffle.partitions": "2",
        # A task that takes some time is run on both machines; the first to end counts.
        "speculation": "true",
        "speculation.interval": "100ms",
        "speculation.minTaskRuntime": "200ms",
        "speculation.task.duration.threshold": "500ms",
        "ui.enabled": "true",
        "ui.port": "0",
        **changes,
    }
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in properties.items()]
    storage = f'[storage]\nurl = "{cluster.shared}/flows"\nshared = ["{cluster.shared}"]\n'
    (directory / "penstock.toml").write_text(storage + "\n".join(["[spark]", *lines, ""]))


def send(product: Product, stream: str, schema: str, count: int) -> None:
    """Make a stream with orders in it."""
    document = {"kind": "Stream", "metadata": {"name": stream}, "spec": {"schema": schema}}
    assert product.client.post("/streams", json=document).status_code == 201
    for first in range(0, count, 1000):
        page = [orders.order(n) for n in range(first, min(first + 1000, count))]
        answer = product.client.post(f"/streams/{stream}/events", json=page)
        assert answer.status_code in (200, 201), answer.text


def make_stream(product: Product, name: str, schema: str | None = None) -> None:
    document = {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": schema} if schema else {}}
    answer = product.client.post("/streams", json=document)
    assert answer.status_code == 201, answer.text


def pipeline(name: str, **spec: Any) -> dict[str, Any]:
    restart = {"backoff_ms": 100, "max_attempts": 5}
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": {"restart": restart, **spec}}


def everything(name: str, shared: Path, **spec: Any) -> dict[str, Any]:
    """Stream → script, lookup → stream, files and nothing."""
    source = {"type": "stream", "stream": "orders", "until": "latest"}
    sinks = [
        {"id": "kept", "type": "stream", "stream": f"{name}_kept"},
        {"id": "files", "type": "file", "path": str(shared / name), "format": "json"},
        {"id": "nothing", "type": "drop"},
    ]
    steps = orders.steps(shared / "customers.csv")
    return pipeline(name, **{"source": source, "processors": steps, "sinks": sinks, **spec})


def complete(product: Product, name: str) -> None:
    """Wait until a pipeline has read all orders."""
    wait_for(f"the end of {name}", lambda: product.get(name)["status"] in ("completed", "failed"))
    assert product.get(name)["status"] == "completed", product.get(name)["error"]


def events_in(product: Product, stream: str) -> list[Any]:
    """The columns of all events of a stream, or their values if it has no schema."""
    found: list[Any] = []
    position = 0
    while True:
        params = {"position": f"offset:{position}", "limit": 10_000}
        page = product.client.get(f"/streams/{stream}/events", params=params).json()
        if not page["events"]:
            return found
        found += [event["columns"] if "columns" in event else event["value"] for event in page["events"]]
        position = page["next"]


def letters_of(product: Product, name: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    position = 0
    while True:
        params = {"position": f"offset:{position}", "limit": 1000}
        page = product.client.get(f"/pipelines/{name}/dead-letters", params=params)
        assert page.status_code == 200, page.text
        if not page.json()["letters"]:
            return found
        for letter in page.json()["letters"]:
            found[letter["step"], letter["code"]] += 1
            position = letter["offset"] + 1


def check_everything(product: Product, name: str, shared: Path, count: int) -> None:
    """Sinks, letters and counts are those of the model."""
    wanted = orders.passing(count)
    kept = events_in(product, f"{name}_kept")
    assert sorted((e["n"], e["twice"], e["name"]) for e in kept) == [(*e.values(),) for e in wanted]
    files = json_rows(shared / name)
    assert sorted((e["n"], e["twice"], e["name"]) for e in files) == [(*e.values(),) for e in wanted]
    failing = orders.failing(count)
    assert letters_of(product, name) == failing
    ops = product.get(name)["ops"]
    assert ops["dead_letters"] == failing.total()
    steps = {step: (c["in"], c["out"], c["errors"]) for step, c in ops["processors"].items()}
    bad, unknown = failing["double", "js_error"], failing["name", "not_found"]
    assert steps == {
        "double": (count, count - bad, bad),
        "name": (count - bad, count - bad - unknown, unknown),
    }
    assert {sink: c["events"] for sink, c in ops["sinks"].items()} == dict.fromkeys(
        ("kept", "files", "nothing"), len(wanted)
    )


def found_windows(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    found = {}
    for row in rows:
        start = datetime.fromisoformat(row["window_start"]).isoformat()
        assert (start, row["name"]) not in found, "each window once"
        found[start, row["name"]] = row["orders"], row["total"]
    return found


def test_executors_without_the_python_that_they_should_have(cluster: SparkCluster, tmp_path: Path) -> None:
    write_settings(tmp_path, cluster, **{"pyspark.python": "/nowhere/python"})
    document = pipeline("one", source={"type": "generate", "count": 1}, sinks=[{"type": "drop"}])
    (tmp_path / "one.json").write_text(json.dumps(document))
    done = Penstock(tmp_path)("run", "one.json")
    assert done.returncode != 0
    assert "the executors have no /nowhere/python" in done.stdout + done.stderr
    assert "spark.pyspark.python" in done.stdout + done.stderr


def test_streams_scripts_tables_and_three_sinks(product: Product, cluster: SparkCluster) -> None:
    make_stream(product, "plain_kept", KEPT)
    product.create(everything("plain", cluster.shared))
    complete(product, "plain")
    check_everything(product, "plain", cluster.shared, COUNT)


def test_windows_keep_their_state_in_shared_storage(product: Product, cluster: SparkCluster) -> None:
    """Files in, a script, a table and a window with state, files out."""
    (cluster.shared / "in").mkdir()
    lines = [json.dumps(orders.order(n)) for n in range(COUNT)]
    (cluster.shared / "in" / "orders.json").write_text("\n".join(lines))
    source = {"type": "file", "path": str(cluster.shared / "in"), "format": "json", "finite": True}
    steps = [*orders.steps(cluster.shared / "customers.csv"), orders.window()]
    sink = {"type": "file", "path": str(cluster.shared / "minutes"), "format": "json"}
    source["schema"] = orders.SCHEMA
    product.create(pipeline("minutes", source=source, processors=steps, sinks=[sink]))
    complete(product, "minutes")
    assert found_windows(json_rows(cluster.shared / "minutes")) == orders.windows(COUNT)
    assert letters_of(product, "minutes") == orders.failing(COUNT)
    assert list((cluster.shared / "flows").rglob("state/0/*"))


def test_generated_events_and_a_query_of_a_stream(product: Product, cluster: SparkCluster) -> None:
    out = cluster.shared / "generated"
    source = {"type": "generate", "count": 1000, "row": {"n": "seq", "twice": "seq * 2"}}
    sinks = [{"type": "file", "path": str(out), "format": "json"}]
    product.create(pipeline("generated", source=source, sinks=sinks, batch={"max_events": 100}))
    complete(product, "generated")
    assert sorted(row["n"] for row in json_rows(out)) == list(range(1000))
    answer = product.client.post("/query", json={"sql": "SELECT count(*) AS n, sum(n) AS total FROM orders"})
    assert answer.status_code == 200, answer.text
    assert str(COUNT * (COUNT - 1) // 2) in answer.text


def test_the_page_of_spark_is_among_the_facts_of_the_worker(product: Product) -> None:
    address = product.client.get("/workers").json()[0]["info"]["spark_ui"]
    assert product.client.get(address, follow_redirects=True).status_code == 200


def test_a_path_that_executors_do_not_see_is_refused(product: Product) -> None:
    place = product.directory / "unseen"  # documents may name it, as it is below the start directory
    place.mkdir()
    (place / "customers.csv").write_text("id,name\n")
    document = everything("unseen", place)
    document["spec"]["sinks"][0]["stream"] = "orders"
    answer = product.client.post("/pipelines", json=document)
    assert answer.status_code == 422, answer.text
    problems = {problem["path"]: problem for problem in answer.json()["errors"]}
    assert {problem["code"] for problem in problems.values()} == {"path_not_shared"}
    assert {"spec.processors[1].file.path", "spec.sinks[1].path"} == set(problems)
    assert "storage.shared" in problems["spec.sinks[1].path"]["hint"]


@pytest.mark.parametrize("number", range(10 if NIGHTLY else 1))
def test_a_killed_machine_loses_and_repeats_nothing(
    product: Product, cluster: SparkCluster, number: int
) -> None:
    """Two pipelines are in the middle of their events when a Spark worker and its executor are killed."""
    plain, stateful = f"killed{number}", f"killed{number}_state"
    make_stream(product, f"{plain}_kept", KEPT)
    make_stream(product, f"{stateful}_kept")
    batch = {"max_events": 100, "max_inflight": 2}
    product.create(everything(plain, cluster.shared, batch=batch))
    passing = {"id": "passing", "type": "filter", "where": "n >= 0"}  # counted by Spark, the others by notes
    steps = [*orders.steps(cluster.shared / "customers.csv"), passing, orders.window()]
    product.create(everything(stateful, cluster.shared, processors=steps, batch=batch))
    for name in (plain, stateful):
        wait_for(f"some batches of {name}", lambda name=name: product.get(name)["ops"].get("batches", 0) >= 2)
    time.sleep(random.uniform(0, 3))
    cluster.kill_worker()
    killed_at = [product.get(name)["ops"]["batches"] for name in (plain, stateful)]
    assert max(killed_at) < COUNT // 200, "they were at work"
    for name in (plain, stateful):
        complete(product, name)
    cluster.add_worker()
    check_everything(product, plain, cluster.shared, COUNT)
    rows = [json.loads(row) for row in events_in(product, f"{stateful}_kept")]
    assert found_windows(rows) == orders.windows(COUNT)
    assert found_windows(json_rows(cluster.shared / stateful)) == orders.windows(COUNT)
    assert letters_of(product, stateful) == orders.failing(COUNT)
    passed, counts = len(orders.passing(COUNT)), product.get(stateful)["ops"]["processors"]
    assert [counts["name"]["out"], counts["passing"]["out"], counts["minutes"]["in"]] == [passed] * 3
