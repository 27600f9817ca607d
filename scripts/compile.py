"""Imports all modules that Penstock and Spark's Python processes import, which caches their bytecode."""

import importlib
import pkgutil

import penstock

SPARK = (
    "pandas",
    "polars",
    "pyspark.daemon",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
)

for name in [*SPARK, *(each.name for each in pkgutil.walk_packages(penstock.__path__, "penstock."))]:
    if not name.startswith("penstock.control.registry.migrations."):  # these are run, not imported
        importlib.import_module(name)
