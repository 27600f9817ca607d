"""The job as a data engineer would write it in PySpark: a streaming query over all files there are."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from bench.data import SCHEMA


def main(source: str, target: str, checkpoint: str) -> None:
    """Run the job."""
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    query = (
        spark.readStream.schema(SCHEMA)
        .json(source)
        .where("ok AND amount > 50")
        .selectExpr("id", "user", "round(amount * 1.19, 2) AS gross", "at")
        .writeStream.format("json")
        .option("path", target)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
