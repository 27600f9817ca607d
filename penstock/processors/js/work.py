"""Processing of batches by a script."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT
from penstock.processors.base import BadEvent, Outcome, Refused
from penstock.processors.js.sandbox import Program, Unloadable, sandbox_for
from penstock.processors.js.values import decode, encode
from penstock.processors.support.parts import Part, merged, one_batch, parts


class ScriptWork:
    """A script as a function over batches."""

    def __init__(self, program: Program, output: pa.Schema) -> None:
        self.program, self.output = program, output
        self.sandbox = sandbox_for(program)

    def __call__(self, batch: pa.RecordBatch) -> Outcome:
        """The output of the script for a batch, or for each of its windows."""
        return merged([self._call(part) for part in parts(batch)], self._schema(batch))

    def _call(self, part: Part) -> Outcome:
        try:
            answer = self.sandbox.run(encode(part.batch, meta=self.program.meta))
        except Unloadable as error:  # it could be loaded when the flow was planned
            raise Fault("js_load", error.message) from None
        except Refused as refused:
            return self._failed(part, refused.code, refused.message, [])
        logs = _logs(answer)
        if "rows" not in answer:
            return self._failed(part, answer["code"], answer["message"], logs)
        columns, faults = self._columns(answer)
        # With a single input event, all output comes from it; otherwise only copies are known to.
        rows = [0] * len(answer["rows"]) if part.batch.num_rows == 1 else answer["rows"]
        bad: dict[int, BadEvent] = {}
        for made, (code, message) in sorted(faults.items()):
            row = rows[made]
            if row < 0:
                return self._failed(part, code, message, logs)
            bad.setdefault(row, BadEvent(part.start + row, code, message))
        event = _event(part, answer["rows"], answer["meta"])
        batch = pa.RecordBatch.from_arrays([*columns, event], schema=self._schema(part.batch))
        if bad:  # if an event has several output events, all of them continue or none
            batch = batch.filter(pa.array([row not in bad for row in rows], pa.bool_()))
        return Outcome(batch, list(bad.values()), logs)

    def _failed(self, part: Part, code: str, message: str, logs: list[str]) -> Outcome:
        """The outcome of a failed part, if it cannot be divided; otherwise raises `Refused`, to divide it.

        Windows are not divided: half a window is another window. For a single event, its log lines are kept.
        """
        if part.window is None and part.batch.num_rows > 1:
            raise Refused(code, message)
        rows = range(part.start, part.start + part.batch.num_rows)
        empty = one_batch(pa.Table.from_batches([], self._schema(part.batch)))
        return Outcome(empty, [BadEvent(row, code, message) for row in rows], logs)

    def _columns(self, answer: dict[str, Any]) -> tuple[list[pa.Array], dict[int, tuple[str, str]]]:
        """The columns, and the first fault of each faulty row."""
        faults: dict[int, tuple[str, str]] = {}
        for row, code, message in answer["faults"]:
            faults.setdefault(row, (code, message))
        arrays = []
        for values, odd, field in zip(answer["columns"], answer["odd"], self.output, strict=True):
            array, wrong = decode(values, field, odd=odd)
            arrays.append(array)
            for row, mismatch in wrong.items():
                faults.setdefault(row, (mismatch.code, str(mismatch)))
        return arrays, faults

    def _schema(self, batch: pa.RecordBatch) -> pa.Schema:
        return pa.schema([*self.output, batch.schema.field(EVENT)])


def _event(part: Part, rows: list[int], changes: list[Any]) -> pa.StructArray:
    """The metadata of the output events: a copy has the metadata of its original."""
    event = part.batch.column(EVENT)
    kept = event.take(pa.array([row if row >= 0 else None for row in rows], pa.int32()))
    if not changes and part.window is None:
        return kept
    fields = list(event.type)
    columns = {field.name: pc.struct_field(kept, field.name) for field in fields}
    for at, name in enumerate(("key", "headers", "sinks"), start=1):
        values = columns[name].to_pylist()
        for change in changes:
            values[change[0]] = change[at]
        if name == "headers":  # Arrow requires the pairs of a map to be tuples
            values = [value and [*map(tuple, value)] for value in values]
        columns[name] = pa.array(values, columns[name].type)
    if part.window is not None:
        columns["batch"] = pa.repeat(pa.scalar(part.window, columns["batch"].type), len(rows))
    return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)


def _logs(answer: dict[str, Any]) -> list[str]:
    lines: list[str] = answer["lines"]
    if answer["omitted"]:
        lines.append(f"{answer['omitted']} more lines of this batch were omitted")
    return lines
