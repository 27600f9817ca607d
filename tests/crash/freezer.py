"""Flows that come to a halt at named places, until all of them have; then the process dies by kill -9.

One JVM so serves several kills. A flow that has come to its place does nothing more: its sinks write nothing
and its ledger notes nothing while the others are still on their way.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from penstock.connectors.stream.sink import StreamSink
from penstock.engine.delivery.ledger import Ledger
from penstock.frames.site import Site
from penstock.testing.faulty_sink import FaultySink


class Freezer:
    """Halts flows, by their state directory, at `before:method:N` or `after:method:N` of their ledger."""

    def __init__(self, places: Mapping[Path, str]) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._calls: Counter[tuple[Path, str]] = Counter()
        self._frozen: set[Path] = set()

    def arm(self) -> None:
        """Let the flows of this process halt, and this process die."""
        flows: dict[int, Path] = {}
        _wrap(Ledger, "__init__", lambda init: self._noting(init, flows))
        methods = [name for name, value in vars(Ledger).items() if callable(value) and name[0] != "_"]
        for name in methods:
            _wrap(Ledger, name, lambda method, name=name: self._halting(method, name, flows))
        for sink in (FaultySink, StreamSink):
            _wrap(sink, "open", self._opening)

    def _noting(self, init: Callable[..., None], flows: dict[int, Path]) -> Callable[..., None]:
        def noted(ledger: Ledger, directory: Path, *args: Any, **kwargs: Any) -> None:
            flows[id(ledger)] = directory
            init(ledger, directory, *args, **kwargs)

        return noted

    def _halting(self, method: Callable[..., Any], name: str, flows: dict[int, Path]) -> Callable[..., Any]:
        def halted(ledger: Ledger, *args: Any, **kwargs: Any) -> Any:
            flow = flows[id(ledger)]
            self._stay(flow)
            with self._lock:
                self._calls[flow, name] += 1
                call = f"{name}:{self._calls[flow, name]}"
            self._reach(flow, f"before:{call}")
            result = method(ledger, *args, **kwargs)
            self._reach(flow, f"after:{call}")
            return result

        return halted

    def _opening(self, open: Callable[..., Any]) -> Callable[..., Any]:
        def opened(sink: Any, site: Site) -> Any:
            writer = open(sink, site)
            write = writer.write

            def halted(*args: Any, **kwargs: Any) -> Any:
                self._stay(Path(site.state))
                return write(*args, **kwargs)

            writer.write = halted
            return writer

        return opened

    def _reach(self, flow: Path, place: str) -> None:
        if self._places.get(flow) != place:
            return
        with self._lock:
            self._frozen.add(flow)
            if self._frozen >= self._places.keys():
                os.kill(os.getpid(), signal.SIGKILL)
        self._stay(flow)

    def _stay(self, flow: Path) -> None:
        if flow in self._frozen:
            threading.Event().wait()  # until the kill


def _wrap(cls: type, name: str, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    method = getattr(cls, name)
    setattr(cls, name, wraps(method)(wrapped(method)))
