"""Copies of a flow's own files at the URL of its checkpoints, so that another machine can continue the flow.

A copy has the ledger and the other small files that no checkpoint holds. Copies are numbered, and each number
is used once: only the worker that knows the newest copy can add the next one. A worker takes a flow over by
adding a copy under its own epoch; from then on every copy of an earlier worker is refused, and with it the
batch that depends on the copy (invariant 6). Decision 62 has the reasons.
"""

from __future__ import annotations

import io
import json
import threading
import zipfile
from pathlib import Path
from typing import Protocol

from penstock.engine.delivery.sink_states import FILE as LEDGER
from penstock.errors import Suspended
from penstock.streams.files import Files

BESIDE = ("clock.json", "mysql_cdc.json")
"""The files beside the ledger without which another machine would go on differently."""

NUMBER = "copy.number"
"""The local file with the number of the copy that the local files continue."""

ABOUT = "about.json"

KEPT = 2
"""Copies that stay: the newest, and one before it, which another worker may be reading."""


class Place(Protocol):
    """Files that are never replaced; see `StoredFiles`."""

    def add(self, name: str, content: bytes) -> bool:
        """Store a new file; false if there is one of this name."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none of this name."""

    def names(self) -> list[str]:
        """The names of the files, sorted."""

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""


class Source(Protocol):
    """The ledger of a flow."""

    @property
    def missed_changes(self) -> int:
        """A number that grows with each change of the missed and the lost batches."""

    def image(self) -> bytes:
        """The ledger as the content of a file."""


class Copies:
    """The copies of one flow. `fetch` comes first, then `claim`, then `save` after each change."""

    def __init__(self, place: Place, directory: Path, epoch: int) -> None:
        self._place, self._directory, self._epoch = place, directory, epoch
        self._lock = threading.Lock()
        self._number = 0
        self._ledger: Source | None = None
        self._saved: tuple[int, tuple[bytes | None, ...]] | None = None

    def fetch(self) -> None:
        """Replace the local files by the newest copy, unless they are the ones that it was made of."""
        while True:
            self._number = self._newest()
            content = self._place.read(_name(self._number)) if self._number else None
            if content is not None or not self._number:
                break  # else another worker has just replaced it by a newer one
        if content is None:
            return
        with zipfile.ZipFile(io.BytesIO(content)) as copy:
            epoch = json.loads(copy.read(ABOUT))["epoch"]
            if epoch > self._epoch:
                raise Suspended(f"another worker has this flow, under epoch {epoch} and not {self._epoch}")
            if self._local() != self._number:
                self._unpack(copy)

    def claim(self, ledger: Source) -> None:
        """Add the first copy of this run; an earlier worker can add none after it."""
        self._ledger = ledger
        self._add()

    def save(self, *, only_missed: bool = False) -> None:
        """Return when the newest copy has all changes; with `only_missed` those of missed batches only.

        Raises `Suspended` if another worker has taken the flow over.
        """
        assert self._ledger is not None
        with self._lock:
            assert self._saved is not None
            missed = self._ledger.missed_changes != self._saved[0]
            if missed or (not only_missed and self._beside() != self._saved[1]):
                self._add()

    def keep(self, name: str, content: bytes) -> None:
        """Store a file of a missed batch, which later copies refer to."""
        self._place.add(_safe(name), content)

    def kept(self, name: str) -> bytes | None:
        """The content of a file of a missed batch; None if it is not stored."""
        return self._place.read(_safe(name))

    def drop(self, name: str) -> None:
        """Remove a file that no copy refers to any more."""
        self._place.remove(_safe(name))

    def tidy(self, wanted: set[str]) -> None:
        """Remove the files of missed batches that are not wanted any more."""
        names = {_safe(name) for name in wanted}
        for name in self._place.names():
            if not name.isdigit() and name not in names:
                self._place.remove(name)

    def _add(self) -> None:
        assert self._ledger is not None
        saved = self._ledger.missed_changes, self._beside()  # before: later changes count
        number = self._number + 1
        added = self._place.add(_name(number), self._packed())
        present = self._numbers()
        if not added or max(present) != number:
            # The second: the number was free again, since the copies around it were removed.
            raise Suspended("another worker has this flow: it has stored a newer copy of the ledger")
        self._number, self._saved = number, saved
        self._note(number)
        for old in present:
            if old <= number - KEPT:
                self._place.remove(_name(old))

    def _packed(self) -> bytes:
        assert self._ledger is not None
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
            copy.writestr(ABOUT, json.dumps({"epoch": self._epoch}))
            copy.writestr(LEDGER, self._ledger.image())
            for name, content in zip(BESIDE, self._beside(), strict=True):
                if content is not None:
                    copy.writestr(name, content)
        return made.getvalue()

    def _unpack(self, copy: zipfile.ZipFile) -> None:
        """Replace the local files. Their number is removed first: after a crash they are replaced again."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for name in (NUMBER, LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", *BESIDE):
            (self._directory / name).unlink(missing_ok=True)
        for name in {LEDGER, *BESIDE} & set(copy.namelist()):
            Files().replace(self._directory / name, copy.read(name), durable=False)
        self._note(self._number)

    def _note(self, number: int) -> None:
        Files().replace(self._directory / NUMBER, str(number).encode(), durable=False)

    def _beside(self) -> tuple[bytes | None, ...]:
        paths = [self._directory / name for name in BESIDE]
        return tuple(path.read_bytes() if path.exists() else None for path in paths)

    def _local(self) -> int | None:
        path = self._directory / NUMBER
        return int(path.read_text()) if path.exists() else None

    def _newest(self) -> int:
        return max(self._numbers(), default=0)

    def _numbers(self) -> list[int]:
        return [int(name) for name in self._place.names() if name.isdigit()]


def _name(number: int) -> str:
    return f"{number:012d}"


def _safe(name: str) -> str:
    """The name of a stored file of a missed batch: without directories, and no number."""
    return f"behind-{name.replace('/', '-')}"
