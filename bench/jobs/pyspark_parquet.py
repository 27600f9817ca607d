"""The job from Parquet to Parquet in a long-lived session: one job for each line of standard input.

A line has the source, the target and the checkpoint; the response is `done`.
"""

from __future__ import annotations

import sys

from bench.data import SCHEMA
from bench.jobs.pyspark_job import good_orders, run_to_end, session


def main() -> None:
    """Run a job for each line."""
    spark = session()
    for line in sys.stdin:
        source, target, checkpoint = line.split()
        orders = good_orders(spark.readStream.schema(SCHEMA).parquet(source))
        run_to_end(orders.writeStream.format("parquet").option("path", target), checkpoint)
        print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
