"""The output of `penstock run` while it runs and at its end."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.cli.output import note, show_json, show_problems
from penstock.cli.text import count, plural, rate
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.control.fleet.lifecycle import State

PLAIN_S, JSON_S = 5.0, 1.0
"""Seconds between lines if the output is not a terminal."""


@dataclass(frozen=True)
class Summary:
    """The summary of a finished run."""

    pipeline: str
    outcome: str
    seconds: float
    input_events: int
    batches: int
    sinks: dict[str, Any]
    error: dict[str, Any] | None
    resumed: bool
    dead_letters: int
    dead_letters_in: str
    """The stream with the dead letters."""

    @classmethod
    def of(cls, pipeline: str, state: State, seconds: float, resumed: bool, dead: str) -> Self:
        """The summary of a stopped flow whose dead letters are in the stream `dead`."""
        return cls(
            pipeline,
            state.outcome or "stopped",
            round(seconds, 3),
            state.ops.get("input_events", 0),
            state.ops.get("batches", 0),
            state.ops.get("sinks", {}),
            state.error if state.outcome == "failed" else None,
            resumed,
            state.ops.get("dead_letters", 0),
            dead,
        )


class Plain:
    """Progress as lines on standard error, for output without a terminal."""

    def __init__(self) -> None:
        self._told: tuple[str, float] = ("", 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def step(self, text: str) -> None:
        """Show a step of the start-up."""
        note(text)

    def update(self, pipeline: str, state: State) -> None:
        """Show the current state of the flow."""
        phase, at = self._told
        if state.phase != phase or time.monotonic() - at >= PLAIN_S:
            self._told = (state.phase, time.monotonic())
            note(progress_line(pipeline, state))

    def end(self, summary: Summary) -> None:
        """Show the summary of the run."""
        show_summary(summary)


class Lines(Plain):
    """Progress as JSON objects on standard output: `progress` lines, and a final `summary`."""

    def step(self, text: str) -> None:
        pass

    def update(self, pipeline: str, state: State) -> None:
        phase, at = self._told
        if state.phase != phase or time.monotonic() - at >= JSON_S:
            self._told = (state.phase, time.monotonic())
            told = {"type": "progress", "pipeline": pipeline, "phase": state.phase, **state.ops}
            show_json({**told, "error": state.error}, line=True)

    def end(self, summary: Summary) -> None:
        show_json({"type": "summary", **asdict(summary)}, line=True)


class Live(Plain):
    """Progress as one continuously updated line of a terminal."""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live as RichLive
        from rich.spinner import Spinner

        self._spinner = Spinner("dots", "")
        self._live = RichLive(
            self._spinner,
            console=Console(file=sys.stderr, highlight=False),
            transient=True,
            refresh_per_second=8,
            # Events of a console sink are shown above the line, unless standard output is redirected.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def step(self, text: str) -> None:
        self._spinner.update(text=text)

    def update(self, pipeline: str, state: State) -> None:
        from rich.text import Text

        self._spinner.update(text=Text(progress_line(pipeline, state), no_wrap=True, overflow="ellipsis"))


def view(*, as_json: bool) -> Plain:
    """The view for the kind of output."""
    if as_json:
        return Lines()
    return Live() if sys.stderr.isatty() else Plain()


def progress_line(pipeline: str, state: State) -> str:
    """The progress of a running flow in one line."""
    ops = state.ops
    parts = [f"{pipeline}: {state.phase.replace('_', ' ')}"]
    if ops:
        parts += [f"{count(ops['input_events'])} in", rate(ops["events_per_second"])]
        parts.append(plural(ops["batches"], "batch"))
        parts += [f"{name} {count(sink['events'])}" for name, sink in ops["sinks"].items()]
    if state.error and state.phase in ("backing_off", "starting"):
        parts.append(str(state.error["message"]))
    return " · ".join(parts)


def show_summary(summary: Summary) -> None:
    """Print the summary of a run as text."""
    styles = {"completed": "bold green", "stopped": "bold yellow", "failed": "bold red"}
    read = plural(summary.input_events, "event")
    took = f" in {plural(summary.batches, 'batch')}, {summary.seconds:.1f} s"
    note((summary.outcome, styles[summary.outcome]), f" {summary.pipeline}: {read} read{took}")
    for name, sink in summary.sinks.items():
        trouble = f", {plural(sink['failures'], 'failure')}" if sink["failures"] else ""
        missed = f", {plural(sink['missed_batches'], 'batch')} missed" if sink["missed_batches"] else ""
        note(f"  {name}: {plural(sink['events'], 'event')} delivered ({sink['guarantee']}){trouble}{missed}")
    if summary.dead_letters:
        failed = plural(summary.dead_letters, "event")
        note(f"  {failed} could not be processed and kept in the stream {summary.dead_letters_in}")
    if summary.error:
        known = Problem.model_fields.keys() & summary.error.keys()
        show_problems([Problem(**{key: summary.error[key] for key in known})])
    if summary.outcome == "completed" and summary.input_events == 0 and summary.resumed:
        note("no new events since the last run; --fresh starts over")
