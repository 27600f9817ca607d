"""The job as a data engineer would write it in PySpark: a streaming query over all existing files."""

from __future__ import annotations

import sys

from bench.data import SCHEMA
from bench.jobs.pyspark_job import good_orders, run_to_end, session


def main(source: str, target: str, checkpoint: str) -> None:
    """Run the job."""
    spark = session()
    orders = good_orders(spark.readStream.schema(SCHEMA).json(source))
    run_to_end(orders.writeStream.format("json").option("path", target), checkpoint)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
