"""The events that all contenders read."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pyarrow as pa

SCHEMA = "id BIGINT, user STRING, country STRING, amount DOUBLE, at STRING, ok BOOLEAN, note STRING"
"""The schema of the events that all contenders read."""
WHERE = "ok AND amount > 50"
COLUMNS = ("id", "user", "round(amount * 1.19, 2) AS gross", "at")
QUERY = f"SELECT {', '.join(COLUMNS)} FROM input WHERE {WHERE}"
OUTPUT = "id BIGINT, user STRING, gross DOUBLE, at STRING"
"""The schema of the query's result."""
FORMATS = ("json", "csv", "parquet")
"""The formats of the jobs with three outputs."""
FILES = 8
NOTE_BYTES = 72
"""Length of a note, so that a line has about 200 bytes."""


def events(directory: Path, count: int) -> int:
    """Write `count` events as JSON lines in a few files, once. Returns the number that pass the filter."""
    directory.mkdir(parents=True, exist_ok=True)
    done = directory / f"_{count}"
    if done.exists():
        return int(done.read_text())
    for old in directory.iterdir():
        old.unlink()
    draw = random.Random(42)
    notes = ["".join(draw.choices(string.ascii_lowercase + " ", k=NOTE_BYTES)) for _ in range(1000)]
    countries = ("DE", "FR", "IT")
    passed = 0
    for number in range(FILES):
        with (directory / f"part-{number}.json").open("w") as file:
            for n in range(number, count, FILES):
                amount = draw.randrange(10_000) / 100
                ok = n % 3 > 0
                passed += ok and amount > 50
                file.write(
                    f'{{"id": {n}, "user": "user-{n % 9973:05d}", "country": "{countries[n % 3]}", '
                    f'"amount": {amount}, "at": "2026-11-{n % 28 + 1:02d}T12:{n % 60:02d}:00Z", '
                    f'"ok": {str(ok).lower()}, "note": "{notes[n % 1000]}"}}\n'
                )
    done.write_text(str(passed))
    return passed


def batch(count: int, first: int = 0) -> pa.RecordBatch:
    """The same kind of events as an Arrow batch."""
    draw = random.Random(first)
    notes = ["".join(draw.choices(string.ascii_lowercase + " ", k=NOTE_BYTES)) for _ in range(1000)]
    ids = range(first, first + count)
    return pa.RecordBatch.from_pydict(
        {
            "id": list(ids),
            "user": [f"user-{n % 9973:05d}" for n in ids],
            "country": [("DE", "FR", "IT")[n % 3] for n in ids],
            "amount": [draw.randrange(10_000) / 100 for _ in ids],
            "at": [f"2026-11-{n % 28 + 1:02d}T12:{n % 60:02d}:00Z" for n in ids],
            "ok": [n % 3 > 0 for n in ids],
            "note": [notes[n % 1000] for n in ids],
        }
    )
