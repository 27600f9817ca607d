"""Three outputs of one query as a data engineer would write them in PySpark."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from bench.data import SCHEMA

FORMATS = ("json", "csv", "parquet")


def main(source: str, target: str, checkpoint: str) -> None:
    """Run the job."""
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.files.maxPartitionBytes", str(32 * 1024 * 1024))
        .getOrCreate()
    )

    def write(df: DataFrame, batch: int) -> None:
        df.persist()
        inherit = inheritable_thread_target(df.sparkSession)

        def one(name: str) -> None:
            writer = df.write.format(name).mode("overwrite")
            writer.option("header", "true").save(f"{target}/{name}/batch={batch}")

        with ThreadPoolExecutor(len(FORMATS)) as pool:
            list(pool.map(inherit(one), FORMATS))
        df.unpersist()

    query = (
        spark.readStream.schema(SCHEMA)
        .option("maxBytesPerTrigger", str(128 * 1024 * 1024))
        .json(source)
        .where("ok AND amount > 50")
        .selectExpr("id", "user", "round(amount * 1.19, 2) AS gross", "at")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
