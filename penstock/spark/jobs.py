"""Spark jobs by tag: their progress, and their cancellation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Work:
    """The progress of the jobs with a tag."""

    running: bool = False
    """Whether a job is still running."""
    active: int = 0
    """The number of tasks that are running on a core."""
    done: int = 0
    """The number of finished tasks."""


@contextlib.contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Tag the jobs of this thread."""
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)


def work_of(spark: SparkSession, tag: str) -> Work:
    """The progress of the jobs with a tag that Spark still remembers."""
    context: Any = spark.sparkContext._jsc.sc()
    store, ids = context.statusStore(), context.statusTracker().getJobIdsForTag(tag)
    jobs = [store.job(number) for number in ids]
    return Work(
        running=any(job.completionTime().isEmpty() for job in jobs),
        active=sum(job.numActiveTasks() for job in jobs),
        done=sum(job.numCompletedTasks() for job in jobs),
    )


def cancel(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs with a tag."""
    with contextlib.suppress(Exception):  # Spark itself may be gone
        spark.sparkContext.cancelJobsWithTag(tag)
