"""The job of `examples/first.yaml` in plain PySpark: `python -m bench.jobs.pyspark_first IN OUT`."""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import SparkSession

SCHEMA = "amount DOUBLE, customer STRING, id BIGINT"


def main() -> None:
    """Read a directory of JSON lines once, as a stream, and write the events that pass the filter."""
    source, target = sys.argv[1:]
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    orders = spark.readStream.schema(SCHEMA).json(source)
    orders.createOrReplaceTempView("input")
    big = spark.sql(
        "SELECT id, customer, amount, round(amount * 1.19, 2) AS gross FROM input WHERE amount > 50"
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = big.writeStream.format("json").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
