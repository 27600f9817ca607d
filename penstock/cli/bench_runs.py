"""Runs of `penstock bench`: versions of a document, measured one after the other."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.bench_target import Target
from penstock.cli.output import Usage
from penstock.engine.measure.events import Input
from penstock.engine.measure.figures import Figures
from penstock.engine.measure.places import Places
from penstock.engine.measure.run import measure
from penstock.engine.plan.analysis import analyse, offline
from penstock.engine.plan.flow import Flow
from penstock.errors import Invalid, Problem
from penstock.policy import Policy
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP = 10_000
"""Events of the warm-up run, in which Spark compiles the plan and the JVM compiles its code."""

SHOW_S = 5.0
"""Seconds between two lines of progress."""


class Version:
    """Creates flows from one version of the document."""

    def __init__(self, target: Target, settings: Settings, directory: Path, requests: bool) -> None:
        lookup, known = offline(target.documents)
        analysis = analyse(
            target.raw,
            lookup,
            known,
            settings.defaults.model_dump(),
            policy=Policy.of(settings, all_variables=True),
        )
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        self.label, self._raw, self._requests = target.label, target.raw, requests
        self._places = Places(directory, settings, lookup, target.recorded)

    def flow(self, name: str) -> Flow:
        """The flow of the document, under a name that no other run uses."""
        flow = self._places.flow(self._raw, name)
        asking = [part for part in flow.processors if part.component.asks()]
        if asking and not self._requests:
            message = (
                f"the step '{asking[0].id}' would send requests to an external system for the measured events"
            )
            hint = "pass --requests to allow this"
            raise Usage(Problem(code="sends_requests", message=message, path=asking[0].place.path, hint=hint))
        return flow


class Turn:
    """Runs of one version, one after the other."""

    def __init__(
        self,
        version: Version,
        given: Input,
        session: SparkSession,
        directory: Path,
        stop: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        self._version, self._given, self._session = version, given, session
        self._directory, self._stop, self._say = directory, stop, say
        self.label = version.label

    def warm_up(self) -> None:
        """Run the flow on a few events and discard the figures."""
        self._say(f"{self.label}: warming up")
        self._run(WARM_UP)

    def __call__(self) -> Figures:
        """Run the flow on all events."""
        self._say(f"{self.label}: measuring")
        return self._run(None)

    def _run(self, limit: int | None) -> Figures:
        name = Path(tempfile.mkdtemp(prefix="run-", dir=self._directory)).name
        flow = self._version.flow(name)
        shown = time.monotonic()

        def progress(read: int) -> None:
            nonlocal shown
            if time.monotonic() - shown > SHOW_S:
                shown = time.monotonic()
                self._say(f"{self.label}: {read:,} events read")

        directory = self._directory / name
        return measure(flow, self._given, self._session, directory, self._stop, progress, limit)
