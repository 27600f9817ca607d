"""Documents for the tests of the registry, and threads that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.errors import PenstockError, Problem


def document(kind: str, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "penstock/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


def stream(name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return document("Stream", name, spec, **metadata)


def pipeline(name: str, reads: str, writes: str = "", **metadata: Any) -> dict[str, Any]:
    """A pipeline from one stream to another, or to the console."""
    sink = {"type": "stream", "stream": writes} if writes else {"type": "console"}
    return document(
        "Pipeline", name, {"source": {"type": "stream", "stream": reads}, "sinks": [sink]}, **metadata
    )


def only_problem(error: PenstockError) -> Problem:
    assert len(error.problems) == 1, error
    return error.problems[0]


def together(*actions: Callable[[], Any]) -> list[Any]:
    """Runs the actions at the same time; the outcome of each: what it returned, or its PenstockError."""
    outcomes: list[Any] = [None] * len(actions)
    barrier = threading.Barrier(len(actions))

    def run(i: int) -> None:
        barrier.wait()
        try:
            outcomes[i] = actions[i]()
        except Exception as error:
            outcomes[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, PenstockError):
            raise outcome
    return outcomes
