"""The job as a data engineer would write it in PySpark: from topic to topic, for all existing records."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from bench.data import SCHEMA
from bench.jobs.pyspark_job import good_orders, run_to_end, session


def main(brokers: str, source: str, target: str, checkpoint: str, jars: str) -> None:
    """Run the job."""
    spark = session({"spark.jars": jars})
    run_job(spark, brokers, source, target, checkpoint)
    spark.stop()


def run_job(spark: SparkSession, brokers: str, source: str, target: str, checkpoint: str) -> None:
    """Run the job in a session."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    events = records.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("event")).select(
        "event.*"
    )
    made = good_orders(events).select(f.to_json(f.struct("*")).alias("value"))
    writer = made.writeStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    run_to_end(writer.option("topic", target), checkpoint)


if __name__ == "__main__":
    main(*sys.argv[1:])
