"""Three outputs of one query, as a data engineer would write them in PySpark."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from bench.data import FORMATS, SCHEMA
from bench.jobs.pyspark_job import good_orders, run_to_end, session


def main(source: str, target: str, checkpoint: str) -> None:
    """Run the job."""
    spark = session({"spark.sql.files.maxPartitionBytes": str(32 * 1024 * 1024)})

    def write(df: DataFrame, batch: int) -> None:
        df.persist()
        inherit = inheritable_thread_target(df.sparkSession)

        def one(name: str) -> None:
            writer = df.write.format(name).mode("overwrite")
            writer.option("header", "true").save(f"{target}/{name}/batch={batch}")

        with ThreadPoolExecutor(len(FORMATS)) as pool:
            list(pool.map(inherit(one), FORMATS))
        df.unpersist()

    lines = spark.readStream.schema(SCHEMA).option("maxBytesPerTrigger", str(128 * 1024 * 1024))
    run_to_end(good_orders(lines.json(source)).writeStream.foreachBatch(write), checkpoint)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
