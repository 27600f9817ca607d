"""The spool: rows that are filtered out of a frame, written to files of the driver by the frame's tasks.

The files of a computation are in one directory, which is set by the thread that starts it. Only successful
tasks leave a file, and a task that runs again replaces its own file: so the directory holds each row once,
however often tasks were repeated, and the driver's memory does not grow with the number of rows. Executors on
other machines send the rows to the driver (`java/DriverFiles.java`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark import plans
from penstock.spark.catalyst import Catalyst
from penstock.spark.java_classes import called, java_class

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SOURCE = Path(__file__).with_name("java") / "Spool.java"
READING_ORDER = SOURCE.with_name("ReadingOrder.java")

DIRECTORY = "penstock.spool"
"""The local property with the directory; `Spool.java` uses the same name."""

FUNCTION = "penstock_spool"
"""The name of the function in a plan; `Spool.java` uses the same name."""

ORDER = "penstock.order"
"""The local property with the directory of the reading order; `ReadingOrder.java` uses the same name."""

BATCH = "streaming.sql.batchId"
"""The local property in which Spark stores the number of the micro-batch."""

HALF = ".half"


def spooled(df: DataFrame, left_out: Column, text: Column, number: int) -> DataFrame:
    """The rows that are not `left_out`; the texts of the others are written to the spool with a number."""
    from pyspark.sql import functions as f

    spark = df.sparkSession
    written = called(spark, java_class(spark, SOURCE).function(number), text)
    return df.filter(f.when(~left_out, f.lit(True)).otherwise(written))


def silent(spark: SparkSession, plan: Any) -> Any:
    """A resolved plan that filters out the same rows, but writes none to a spool and observes nothing.

    For a plan that occurs twice in another one: its reports must be written once.
    """
    catalyst = Catalyst(spark)

    def walk(node: Any) -> Any:
        children = list(plans.elements(node.children()))
        made = [walk(child) for child in children]
        if plans.name(node) == "CollectMetrics":
            return made[0]
        if plans.name(node) == "Filter" and FUNCTION in node.condition().toString():
            return catalyst.filter(node.condition().branches().head()._1(), made[0])
        if any(new is not old for new, old in zip(made, children, strict=True)):
            return node.withNewChildren(catalyst.seq(made))
        return node

    return walk(plan)


@contextmanager
def spooling(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Make the actions of this thread write to a directory, which is emptied first."""
    context = spark.sparkContext
    run, batch = (str(context.getLocalProperty(name)) for name in ("spark.jobGroup.id", BATCH))
    for name, value in (emptied(directory) | order_beside(directory, run, batch)).items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        # PySpark declares a string, and accepts None to remove the property.
        context.setLocalProperty(DIRECTORY, None)  # type: ignore[arg-type]


def emptied(directory: Path) -> dict[str, str]:
    """The local properties of a thread whose actions write to a directory, which is emptied."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return {DIRECTORY: str(directory)}


def order_beside(spool: Path, run: str, batch: int | str) -> dict[str, str]:
    """The local properties for the reading order of a micro-batch; the files of other batches are removed.

    Unlike the spool, the directory survives a second attempt, in which Spark does not repeat tasks before a
    shuffle. A new run has its own directory, since its tasks may divide the same events differently.
    """
    order = spool.with_name(f"{spool.name}-order") / f"{run}-{batch}"
    if order.parent.exists():
        for other in order.parent.iterdir():
            if other != order:
                shutil.rmtree(other, ignore_errors=True)
    order.mkdir(parents=True, exist_ok=True)
    return {ORDER: str(order)}


def unfinished(directory: Path) -> list[str]:
    """The names of files that a task has begun and no task has finished, so that rows are missing.

    If a task fails because its file did not arrive, Spark may have cached its rows. The task that replaces it
    then reads these rows, and computes nothing.
    """
    names = {path.name for path in directory.iterdir()}
    begun = {name.partition(".")[0] for name in names if name.endswith(HALF)}
    return sorted(begun - names)


def lines(directory: Path) -> Iterator[str]:
    """All spooled rows, in the order of the spools and of their partitions."""
    for path in sorted(directory.iterdir()):
        if path.suffix == HALF:
            continue  # of a failed or cancelled task
        with path.open(encoding="utf-8", newline="\n") as page:
            for line in page:
                yield line[:-1]
