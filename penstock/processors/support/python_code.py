"""The user's Python code: parsed without running it, and run over batches."""

from __future__ import annotations

import ast
import io
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Literal

import pyarrow as pa
from cachetools import LRUCache

from penstock.errors import Invalid, Problem
from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT
from penstock.frames.known import known_of
from penstock.processors.base import BadEvent, Outcome, Refused
from penstock.processors.support.parts import Part, merged, one_batch, parts
from penstock.processors.support.records import batch_of
from penstock.streams.casting import convert
from penstock.streams.decode.results import Mismatch

Function = Literal["process", "process_row"]

MOST_LINES = 100
"""Maximum number of printed lines per batch."""

_MODULES: LRUCache[tuple[str, str], dict[str, Any]] = LRUCache(32)
"""Loaded code, run once per process, so that its imports and data are available to all batches."""


def function_in(code: str, name: str, field: str) -> Function:
    """The function that the code defines; `Invalid` at `field` if it isn't Python, or has none or both."""
    try:
        tree = ast.parse(code, name)
        compile(tree, name, "exec")
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise Invalid(
            Problem(code="python_syntax", message=f"not valid Python: {told}{line}", path=field)
        ) from None
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if ("process" in found) == ("process_row" in found):
        message = "the code must define one function: process(table) or process_row(event)"
        raise Invalid(Problem(code="python_function", message=message, path=field))
    return "process" if "process" in found else "process_row"


class PythonWork:
    """The user's function as a function over batches."""

    def __init__(self, code: str, name: str, function: Function, output: pa.Schema) -> None:
        self.name, self.output, self.by_row = name, output, function == "process_row"
        self.function: Callable[[Any], Any] = _module(code, name)[function]

    def __call__(self, batch: pa.RecordBatch) -> Outcome:
        """The output of the function for a batch, or for each of its windows."""
        schema = pa.schema([*self.output, batch.schema.field(EVENT)])
        with redirect_stdout(_Lines()) as printed:
            outcome = merged(list(self._outcomes(batch, schema)), schema)
        return Outcome(outcome.batch, outcome.bad, printed.told())

    def _outcomes(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[Outcome]:
        if self.by_row:
            return [self._rows(batch, schema)]
        return [self._table(part, schema) for part in parts(batch)]

    def _table(self, part: Part, schema: pa.Schema) -> Outcome:
        try:
            made = self._called(pa.Table.from_batches([part.batch]))
            return Outcome(self._shaped(made, part, schema))
        except Refused as refused:
            if part.window is None and part.batch.num_rows > 1:
                raise  # the engine searches for the failing events; half a window is another window
            rows = range(part.start, part.start + part.batch.num_rows)
            bad = [BadEvent(row, refused.code, refused.message) for row in rows]
            return Outcome(one_batch(schema.empty_table()), bad)

    def _shaped(self, made: Any, part: Part, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of a table, in the order and with the types of the schema."""
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        if not isinstance(made, pa.Table):
            raise Refused("python_error", f"process returned {type(made).__name__}, not a pyarrow.Table")
        event = part.batch.column(EVENT)
        if EVENT not in made.column_names:
            same = made.num_rows == part.batch.num_rows
            made = made.append_column(
                schema.field(EVENT), event if same else pa.nulls(made.num_rows, event.type)
            )
        if extra := [name for name in made.column_names if name not in schema.names]:
            raise Refused("extra_property", f"the table has an unexpected column '{extra[0]}'")
        arrays = []
        for field in schema:
            if field.name not in made.column_names:
                raise Refused("missing_field", f"the table has no column '{field.name}'")
            array, lost = convert(made.column(field.name).combine_chunks(), field.type)
            if lost is not None:
                raise Refused(
                    "wrong_type", f"column '{field.name}' has a value that is not a valid {field.type}"
                )
            array = known_of(array) if field.name == EVENT else array
            if not field.nullable and array.null_count:
                raise Refused("missing_field", f"column '{field.name}' is null")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self, batch: pa.RecordBatch, schema: pa.Schema) -> Outcome:
        names = [name for name in batch.schema.names if name != EVENT]
        records: list[dict[str, Any] | Mismatch] = []
        sources: list[int] = []
        for row, event in enumerate(batch.select(names).to_pylist(maps_as_pydicts="strict")):
            try:
                made = self._records(self._called(event))
            except Refused as refused:
                made = [Mismatch(refused.code, refused.message)]
            records += made
            sources += [row] * len(made)
        decoded = batch_of(records, self.output)
        bad = {sources[m.line - 1]: BadEvent(sources[m.line - 1], m.code, m.reason) for m in decoded.misfits}
        wrong = {misfit.line - 1 for misfit in decoded.misfits}
        given = [source for i, source in enumerate(sources) if i not in wrong]
        event = batch.column(EVENT).take(pa.array(given, pa.int64()))
        out = pa.RecordBatch.from_arrays([*decoded.batch.columns, event], schema=schema)
        if bad:  # an event with several outputs continues with all of them or none
            out = out.filter(pa.array([source not in bad for source in given], pa.bool_()))
        return Outcome(out, list(bad.values()))

    def _records(self, made: Any) -> list[dict[str, Any] | Mismatch]:
        records = [] if made is None else made if isinstance(made, list) else [made]
        for record in records:
            if not isinstance(record, dict):
                what = type(record).__name__
                raise Refused(
                    "python_error", f"process_row returned {what}, not a dict, a list of them or None"
                )
            if extra := [name for name in record if name not in self.output.names]:
                raise Refused("extra_property", f"the event has an unexpected column '{extra[0]}'")
        return records

    def _called(self, argument: Any) -> Any:
        try:
            return self.function(argument)
        except (Exception, SystemExit) as error:
            raise Refused("python_error", _told(error, self.name)) from None


def _module(code: str, name: str) -> dict[str, Any]:
    if (name, code) not in _MODULES:
        module: dict[str, Any] = {"__name__": "penstock_step", "__file__": name}
        try:
            exec(compile(code, name, "exec"), module)
        except (Exception, SystemExit) as error:
            raise Fault("python_load", _told(error, name)) from None
        _MODULES[name, code] = module
    return _MODULES[name, code]


def _told(error: BaseException, name: str) -> str:
    """The message of an exception, and the last line of the user's code in its traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"


class _Lines(io.StringIO):
    """The printed lines."""

    def told(self) -> list[str]:
        lines = self.getvalue().splitlines()
        more = len(lines) - MOST_LINES
        return [
            *lines[:MOST_LINES],
            *([f"{more} more lines of this batch were left out"] if more > 0 else []),
        ]
