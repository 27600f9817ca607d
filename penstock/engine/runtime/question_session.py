"""The Spark of a process that answers questions: small, on this machine, and ended by a lack of memory."""

from __future__ import annotations

from penstock.engine.plan.reach import reach_of
from penstock.engine.runtime.session import JAVA_OPTIONS
from penstock.settings import Settings
from penstock.spark.java import collector_chosen

MASTER = "local[2]"
"""Questions are small, and a cluster may have no room for another application."""

COMPILER, COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
"""Questions are short: a JVM that starts fast, and needs little memory."""

OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A JVM that has run out of memory once is not to be trusted."""


def question_session(settings: Settings) -> Settings:
    """The settings of such a session. Documents are judged as for the workers, also for their cluster."""
    java = settings.spark.get(JAVA_OPTIONS, COMPILER if collector_chosen() else f"{COMPILER} {COLLECTOR}")
    own = {
        **reach_of(settings),
        "spark.master": MASTER,
        "spark.driver.memory": f"{settings.questions.memory_mb // 2}m",
        JAVA_OPTIONS: f"{java} {OUT_OF_MEMORY}",
        "spark.ui.enabled": "false",
    }
    return settings.model_copy(update={"spark": {**settings.spark, **own}})
