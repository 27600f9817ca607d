"""The input of a drill: files of numbered events that arrive while it runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.drill.subjects import Subject

EVENTS = 50
"""Events per file."""

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 2.0
"""Minimum seconds between two files, and seconds between two files of a pipeline if there are few pipelines:
small batches of many pipelines would keep a small machine busy."""


class Feed:
    """Writes files of events, for each pipeline in turn, until it is stopped."""

    def __init__(self, root: Path, subjects: Sequence[Subject]) -> None:
        self._root, self._subjects = root, subjects
        self.written = dict.fromkeys((subject.id for subject in subjects), 0)
        """Number of events of each pipeline: the ground truth for its outputs."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Write the first file of each pipeline, and start writing further files at intervals."""
        for subject in self._subjects:
            (self._root / "in" / subject.id).mkdir(parents=True)
            self._write(subject)
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        pause = max(SHORTEST_PAUSE_S, LONGEST_PAUSE_S / len(self._subjects))
        while True:
            for subject in self._subjects:
                if self._stop.wait(pause):
                    return
                self._write(subject)

    def _write(self, subject: Subject) -> None:
        first = self.written[subject.id]
        directory = self._root / "in" / subject.id
        hidden = directory / f".{first:010d}.json"
        hidden.write_text("".join(f"{event}\n" for event in subject.events(first, EVENTS)), encoding="utf-8")
        os.replace(hidden, directory / f"{first:010d}.json")  # a reader never sees a partial file
        self.written[subject.id] = first + EVENTS
