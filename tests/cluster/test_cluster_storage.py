"""State of a window in S3, written by executors of a real Spark cluster, through the loss of a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import wait_for
from tests.java import QUICK
from tests.product import Product
from tests.s3_server import S3
from tests.spark_cluster import SparkCluster
from tests.storage import orders
from tests.storage.test_checkpoints import complete, login, write_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 1_500


def test_executors_keep_state_in_s3(object_store: S3, tmp_path: Path) -> None:
    bucket = object_store.bucket()
    with SparkCluster.run() as cluster:
        properties = {
            "master": cluster.url,
            "pyspark.python": str(cluster.python),
            "executor.memory": "640m",
            "executor.extraJavaOptions": QUICK,
            "sql.shuffle.partitions": "2",
            "hadoop.fs.s3a.endpoint": object_store.url,
        }
        write_settings(tmp_path, f"s3a://{bucket}/flows", **properties)
        product = Product(tmp_path, env=login())
        try:
            product.up()
            orders.make_stream(product, "orders", orders.SCHEMA)
            for first in range(0, COUNT, 500):
                orders.send(product, first, first + 500)
            orders.make_stream(product, "minutes_out")
            product.create(orders.windows_pipeline("minutes", "minutes_out"))
            wait_for("some batches", lambda: product.get("minutes")["ops"].get("batches", 0) >= 2)
            cluster.kill_worker()
            assert product.get("minutes")["ops"]["batches"] < COUNT // 100, "it was at work"
            complete(product, "minutes")
            found = [json.loads(row) for row in orders.events_in(product, "minutes_out")]
            assert orders.found_windows(found) == orders.windows(COUNT)
            assert list((object_store.path(bucket) / "flows").glob("minutes/*/*/state/0/*/*"))
        finally:
            product.close()
