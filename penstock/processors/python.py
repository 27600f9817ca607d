"""The `python` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from penstock.errors import Invalid, Problem
from penstock.frames.columns import as_arrow, as_struct, declared
from penstock.processors.base import BatchProcessor, Desk, Stage, Work
from penstock.processors.support.files import read_file
from penstock.specs.reach import FilePath

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class PythonProcessor(BatchProcessor):
    """Transforms events with a function in Python, in Spark's Python workers. **Off by default.**

    The code runs with all permissions of the worker: it may read files, access the network and start
    processes. So the setting `allow_python = true` is required wherever the code is validated or run. The
    code defines one of:

    - `def process_row(event: dict) -> dict | list | None`: one event in; one, several or none out.
    - `def process(table: pyarrow.Table) -> pyarrow.Table`: a batch in, a batch out. The last column of the
      table is `$event` with offset, time, key and headers; keep it when you filter or sort. A result without
      it gets that of the input if it has the same number of rows; else its events are new, without key and
      headers, and they go to all sinks, regardless of an earlier `route` step.

    The result must have the columns of `schema`, by default those of the input, and no others. An event for
    which the function raises an exception, or returns a value that does not fit, goes to the dead letters
    (`python_error`, `wrong_type`, `extra_property`), with the line of the code; `process` may be called again
    with a part of a batch. Printed text goes to the pipeline's log, up to 100 lines per batch. Code outside
    the function runs once per process; its variables may be lost between two batches.
    """

    example: ClassVar[str] = """\
type: python
inline: |
  def process_row(event):
      return {**event, "name": event["name"].title()} if event["name"] else None
"""

    type: Literal["python"] = "python"
    inline: str | None = Field(default=None, min_length=1, description="The code.")
    file: FilePath | None = Field(
        default=None, min_length=1, description="Path of a file with the code, read when the pipeline starts."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Output columns as Spark DDL. Default: the input columns.",
    )

    _code: str = PrivateAttr(default="")
    _output: pa.Schema = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.inline is None) == (self.file is None):
            raise ValueError("set either 'inline' or 'file'")
        return self

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The columns of the schema, or the input columns."""
        from penstock.processors.support.python_code import function_in

        if not stage.site.allow_python:
            raise Invalid(
                Problem(
                    code="python_not_allowed",
                    message="Python steps are disabled",
                    path="type",
                    hint="set allow_python = true in penstock.toml, or PENSTOCK_ALLOW_PYTHON=true, for the"
                    " server and its workers, or use javascript",
                )
            )
        self._code = self.inline if self.inline is not None else self._read()
        function_in(self._code, self._name, self._field)
        made = as_struct(declared(self.schema_)) if self.schema_ is not None else schema
        self._output = as_arrow(made)
        return made

    def open(self, desk: Desk) -> Work:
        """The user's function as a function over batches."""
        from penstock.processors.support.python_code import PythonWork, function_in

        function = function_in(self._code, self._name, self._field)
        return PythonWork(self._code, self._name, function, self._output)

    @property
    def _field(self) -> str:
        return "inline" if self.inline is not None else "file"

    @property
    def _name(self) -> str:
        return self.file or "<inline>"

    def _read(self) -> str:
        assert self.file is not None
        try:
            return read_file(self.file, "file").decode()
        except UnicodeDecodeError:
            message = f"{self.file} is not UTF-8"
            raise Invalid(Problem(code="unreadable_file", message=message, path="file")) from None
