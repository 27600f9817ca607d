"""A drill from its start to its check."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.cli.drill.check import check_outputs, findings_of_rounds
from penstock.cli.drill.cluster import START_S, Cluster, Interrupted
from penstock.cli.drill.feed import Feed
from penstock.cli.drill.report import Report
from penstock.cli.drill.rounds import Fault, Round, run_round
from penstock.cli.drill.subjects import Subjects
from penstock.cli.drill.watch import Watch
from penstock.cli.text import plural
from penstock.errors import PenstockError, Problem
from penstock.settings import Settings

FINISH_S = 600.0
"""Seconds for all pipelines to read the rest of their input."""


class Drill:
    """Injects faults into its own cluster, and checks the outputs of the pipelines."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        subjects: Subjects,
        faults: Sequence[Fault],
        report: Report,
        stop: threading.Event,
        say: Callable[[str], None],
        *,
        overlap: bool = False,
    ) -> None:
        self._root, self._subjects, self._faults, self.report = root, subjects, faults, report
        self._say = say
        self._ready = 2 if overlap else report.workers
        """Workers that must be ready before a fault."""
        pipelines = subjects.pipelines
        self._cluster = Cluster(root, settings, report.workers, stop.is_set)
        self._feed = Feed(root, pipelines)
        self._watch = Watch(root / "work", (subject.id for subject in pipelines))

    def run(self) -> None:
        """Fill the report; an interrupted drill leaves it without a verdict."""
        began = time.monotonic()
        try:
            self._run()
        except Interrupted:
            self._say("interrupted: the results are not checked")
        finally:
            self.report.seconds = time.monotonic() - began
            self._say("stopping the processes of the drill")
            self._feed.stop()
            self._cluster.stop()

    def _run(self) -> None:
        self._say(f"starting a server and {plural(self.report.workers, 'worker')}…")
        client = self._cluster.start()
        self._feed.start()
        for other in self._subjects.others:
            client.create(other["kind"], other)
        for subject in self._subjects.pipelines:
            client.create("Pipeline", subject.document(self._root, finite=False))
        self._watch.start()
        try:
            self._cluster.wait(self._all_deliver, "the first batch of all pipelines", START_S)
            self._say(f"{plural(len(self._subjects.pipelines), 'pipeline')} running; the faults begin")
            for number, fault in enumerate(self._faults, 1):
                done = run_round(
                    number,
                    fault,
                    self._cluster,
                    self._watch,
                    self._say,
                    ready=self._ready,
                    last=number == len(self._faults),
                )
                self.report.rounds.append(done)
                self._say(_line(done, len(self._faults)))
            self._finish()
        finally:
            self._watch.stop()
        self._check()

    def _all_deliver(self) -> bool:
        self._require_sound()
        seen = [self._watch.seen(subject.id) for subject in self._subjects.pipelines]
        return all(each.acked_at > 0 for each in seen)

    def _require_sound(self) -> None:
        """Raise the error of a pipeline that has failed."""
        for name, pipeline in self._cluster.pipelines().items():
            if pipeline["status"] == "failed":
                error = pipeline["error"] or {}
                message = f"pipeline '{name}' has failed: {error.get('message')}"
                path, hint = error.get("path"), error.get("hint")
                raise PenstockError(
                    Problem(code=str(error.get("code", "failed")), message=message, path=path, hint=hint)
                )

    def _finish(self) -> None:
        """Let all pipelines finish their input, and run undisturbed copies of pipelines without a model."""
        self._feed.stop()
        self.report.events = sum(self._feed.written.values())
        self._say("no more faults: waiting for the pipelines to read the rest of their input")
        client = self._cluster.client
        for subject in self._subjects.pipelines:
            client.replace("Pipeline", subject.id, subject.document(self._root, finite=True))
        self._cluster.wait(self._all_completed, "the end of all pipelines", FINISH_S)
        unmodelled = [subject for subject in self._subjects.pipelines if not subject.modelled]
        if unmodelled:
            self._say(f"running {plural(len(unmodelled), 'pipeline')} again, undisturbed, to compare")
            for subject in unmodelled:
                client.create("Pipeline", subject.document(self._root, finite=True, undisturbed=True))
            self._cluster.wait(self._all_completed, "the end of the undisturbed pipelines", FINISH_S)

    def _all_completed(self) -> bool:
        self._require_sound()
        return all(each["status"] == "completed" for each in self._cluster.pipelines().values())

    def _check(self) -> None:
        stuck = {each.number: each.stuck for each in self.report.rounds}
        seen = findings_of_rounds(self._watch.stepped_back, stuck)
        verdict = check_outputs(self._root, self._subjects.pipelines, self._feed.written)
        self.report.verdict = replace(verdict, findings=[*verdict.findings, *seen])


def _line(done: Round, rounds: int) -> str:
    times = sorted(done.takeover_s.values())
    lasted = "" if done.lasted_s is None else f" for {done.lasted_s:.1f} s"
    taken = f"{plural(len(times), 'pipeline')} taken over"
    taken += f" after {times[0]:.1f} to {times[-1]:.1f} s" if times else ""
    stuck = f", {len(done.stuck)} NOT TAKEN OVER" if done.stuck else ""
    return f"round {done.number}/{rounds}: {done.kind} worker {done.worker}{lasted}: {taken}{stuck}"
