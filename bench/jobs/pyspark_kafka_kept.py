"""The job from topic to topic in a long-lived session: one job for each line of standard input.

A line has the brokers, the source, the target and the checkpoint; the response is `done`.
"""

from __future__ import annotations

import sys

from bench.jobs.pyspark_job import session
from bench.jobs.pyspark_kafka import run_job


def main(jars: str) -> None:
    """Run a job for each line."""
    spark = session({"spark.jars": jars})
    for line in sys.stdin:
        run_job(spark, *line.split())
        print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
