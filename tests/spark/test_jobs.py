"""Jobs by tag: what Spark says of them, and that a cancel ends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import inheritable_thread_target

from penstock.spark import jobs
from penstock.spark.driver import runs_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(600)
    yield from batches


def test_work_is_counted_and_cancelled(spark: SparkSession) -> None:
    with jobs.tagged(spark, "penstock-test-done"):
        spark.range(0, 10, 1, 3).rdd.count()
    done = jobs.work_of(spark, "penstock-test-done")
    assert (done.running, done.active, done.done) == (False, 0, 3)

    errors: list[Exception] = []

    def run() -> None:
        try:
            with jobs.tagged(spark, "penstock-test-slow"):
                spark.range(1).mapInArrow(slow, "id BIGINT").collect()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=inheritable_thread_target(spark)(run))
    thread.start()
    deadline = time.monotonic() + 60
    while not jobs.work_of(spark, "penstock-test-slow").active:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert jobs.work_of(spark, "penstock-test-slow").running
    assert runs_tasks(spark)
    jobs.cancel(spark, "penstock-test-slow")
    thread.join(60)
    assert len(errors) == 1
    assert not jobs.work_of(spark, "penstock-test-slow").running
