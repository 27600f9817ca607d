"""The Spark session of a process that answers questions: small, local, and ended if it runs out of memory."""

from __future__ import annotations

from penstock.engine.plan.reach import reach_of
from penstock.engine.runtime.session import JAVA_OPTIONS
from penstock.settings import Settings
from penstock.spark.java import collector_chosen

MASTER = "local[2]"
"""Questions are small, and a cluster may have no resources for another application."""

COMPILER, COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
"""Options for a JVM that starts fast and needs little memory, since questions are short."""

OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A JVM that has run out of memory is not reliable any more."""


def question_session(settings: Settings) -> Settings:
    """The settings of a session for questions. Documents are validated as for workers and their cluster."""
    java = settings.spark.get(JAVA_OPTIONS, COMPILER if collector_chosen() else f"{COMPILER} {COLLECTOR}")
    own = {
        **reach_of(settings),
        "spark.master": MASTER,
        "spark.driver.memory": f"{settings.questions.memory_mb // 2}m",
        JAVA_OPTIONS: f"{java} {OUT_OF_MEMORY}",
        "spark.ui.enabled": "false",
    }
    return settings.model_copy(update={"spark": {**settings.spark, **own}})
