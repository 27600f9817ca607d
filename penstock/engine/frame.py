"""The events of a batch as its sinks read them, and what Spark does to compute them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Frame:
    """The events of a batch, computed by the first sink that reads them.

    Those of a batch with several sinks are kept in memory or on disk until the last user releases them.
    `anew` is called before they are computed once more.
    """

    def __init__(self, df: DataFrame, anew: Callable[[], None] = lambda: None, *, shared: bool) -> None:
        self.df, self.kept = df.persist() if shared else df, shared
        self.computed = False
        """Whether they were computed by an action of their own, so that sinks only read them."""
        self._anew, self._users = anew, 1
        self._computing = threading.Lock()

    def begin(self) -> None:
        """A sink is about to read the events."""
        if not self.kept:
            self._anew()

    def compute(self) -> None:
        """Compute the events by an action of their own, and keep them; others that ask for it wait."""
        with self._computing:
            if self.computed:
                return
            if not self.kept:
                self._anew()
                self.df, self.kept = self.df.persist(), True
            self.df.write.format("noop").mode("overwrite").save()
            self.computed = True

    def hold(self) -> None:
        """One more needs it. Called with the lock of the lanes, like `release`."""
        self._users += 1

    def release(self) -> None:
        """One less needs it."""
        self._users -= 1
        if not self._users and self.kept:
            self.df.unpersist()


@dataclass(frozen=True)
class Work:
    """What Spark has done and does for the jobs with a tag."""

    running: bool = False
    """Whether a job has not ended."""
    active: int = 0
    """Tasks that have a core."""
    done: int = 0
    """Tasks that have ended."""
    seconds: float = 0.0
    """How long the jobs that have ended took."""


def work_of(spark: SparkSession, tag: str) -> Work:
    """What Spark does for a tag, as far as it still remembers its jobs."""
    context: Any = spark.sparkContext._jsc.sc()
    store, ids = context.statusStore(), context.statusTracker().getJobIdsForTag(tag)
    jobs = [store.job(id) for id in ids]
    ended = [job for job in jobs if job.completionTime().isDefined()]
    return Work(
        running=len(ended) < len(jobs),
        active=sum(job.numActiveTasks() for job in jobs),
        done=sum(job.numCompletedTasks() for job in jobs),
        seconds=sum(_took_s(job) for job in ended),
    )


def _took_s(job: Any) -> float:
    began, ended = job.submissionTime(), job.completionTime()
    if began.isEmpty():
        return 0.0
    return float(ended.get().getTime() - began.get().getTime()) / 1000
