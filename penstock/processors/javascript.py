"""The `javascript` step."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from penstock.errors import Invalid, Problem
from penstock.frames.columns import as_arrow, as_struct, declared
from penstock.processors.base import BatchProcessor, Desk, Stage, Work
from penstock.processors.js.sandbox import META, Limits, Program, Sandbox, Unloadable, make_program
from penstock.processors.support.files import read_file
from penstock.specs.reach import FilePath

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class JavascriptProcessor(BatchProcessor):
    """Transforms events with JavaScript, on V8.

    The script defines a function `processBatch(events)`. It gets an array of objects with the columns as
    properties, and returns an array of events, a single event, or nothing, which means the given events with
    the changes that the function has made to them. An empty array drops all events. Properties must be
    columns of `schema`; a column without a property is null. Variables outside the function are initialized
    once, and may be lost between two batches: use a `window` or `dedupe` step to keep state.

    If the script throws an exception, reaches a limit or returns an invalid value, the smallest part of the
    batch that fails goes to the dead letters, with a code such as `js_error`, `js_cpu_limit`,
    `js_memory_limit`, `js_timeout`, `extra_property` or `wrong_type`. A script may therefore be called again
    with a part of a batch. Only the events of a window (`emit: events`) always stay together.

    Integers are numbers, or BigInt beyond 2^53, in both directions. DECIMAL is text; numbers are accepted if
    they fit exactly. DATE and TIMESTAMP are ISO 8601 text; a Date or milliseconds since 1970 are accepted,
    too. BINARY is base64; a Uint8Array is accepted, too. STRUCT and MAP are objects, ARRAY is an array.

    `event.$meta` has `key`, `headers`, `offset` and `time`. A script can set `key`, `headers` and `sink`: the
    id of the only sink for the event, or an array of ids. A copy `{...event}` includes `$meta`, and can be
    changed independently. A new object has no `$meta`, but the script can add one; without it, the event goes
    to all sinks, whatever an earlier `route` step has chosen.

    `console.log` writes to the pipeline's log, up to 100 lines per batch. A script has no access to files,
    the network or processes, and can't be async. `require('name')` returns the exports of a file under
    `modules` (`module.exports`, `exports.x` or `export function x`). Files are read when the pipeline starts.
    """

    routes: ClassVar[bool] = True
    example: ClassVar[str] = """\
type: javascript
inline: |
  function processBatch(events) {
    return events
      .filter(event => event.amount > 0)
      .map(event => ({...event, gross: event.amount * 1.19}))
  }
schema: id BIGINT, amount DOUBLE, gross DOUBLE
limits: {cpu_ms: 200, mem_mb: 64}
"""

    type: Literal["javascript"] = "javascript"
    inline: str | None = Field(default=None, min_length=1, description="The script.")
    file: FilePath | None = Field(
        default=None, min_length=1, description="Path of the script, instead of `inline`."
    )
    modules: dict[str, FilePath] = Field(
        default_factory=dict, description="Name → path of scripts that this script can `require`."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Output columns as Spark DDL. Default: the input columns.",
    )
    limits: Limits = Field(default_factory=Limits, description="Limits of one call.")

    _program: Program | None = PrivateAttr(default=None)
    _output: pa.Schema | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _one_script(self) -> Self:
        if (self.inline is None) == (self.file is None):
            raise ValueError("set either 'inline' or 'file'")
        return self

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The columns of `schema`, or the input columns; loads the script."""
        made = schema if self.schema_ is None else as_struct(declared(self.schema_))
        columns = _shapes(schema, None), _shapes(made, "schema")
        self._program = make_program(self._sources(), *columns, stage.sinks, self.limits)
        self._output = as_arrow(made)
        if fault := _fault(self._program):
            source, message = fault
            path = [self._script, *(f"modules.{name}" for name in self.modules)][source]
            raise Invalid(Problem(code="js_load", message=message, path=path))
        return made

    def open(self, desk: Desk) -> Work:
        """The script as a function over batches."""
        from penstock.processors.js.work import ScriptWork

        assert self._program is not None, "planned before it is opened"
        return ScriptWork(self._program, self._output)

    @property
    def _script(self) -> str:
        return "inline" if self.file is None else "file"

    def _sources(self) -> tuple[tuple[str, str], ...]:
        """The names and texts of the script and its modules."""
        problems, found = [], []
        paths = {"file": self.file, **{f"modules.{name}": path for name, path in self.modules.items()}}
        if self.inline is not None:
            found.append((self._script, self.inline))
        for field, path in paths.items():
            if path is None:
                continue
            try:
                found.append((field.removeprefix("modules."), _text(path, field)))
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        return tuple(found)


def _text(path: str, field: str) -> str:
    try:
        return read_file(path, field).decode()
    except UnicodeDecodeError:
        raise Invalid(Problem(code="unreadable_file", message=f"{path} is not UTF-8", path=field)) from None


def _shapes(schema: StructType, path: str | None) -> list[tuple[str, Any]]:
    """Names and shapes of columns; `Invalid` at `path` for columns that scripts don't support."""
    from pyspark.errors import PySparkTypeError

    from penstock.processors.js.values import shape

    shapes, problems = [], []
    for field in schema.fields:
        try:
            shapes.append((field.name, shape(as_arrow(type(schema)([field])).field(0).type)))
        except (TypeError, PySparkTypeError):
            message = f"column '{field.name}' is {field.dataType.simpleString()}, which scripts don't support"
            hint = "cast or drop it in an earlier step"
            problems.append(Problem(code="unsupported_type", message=message, path=path, hint=hint))
        if field.name == META:
            message = f"the column '{META}' conflicts with the metadata of the event"
            hint = "rename it in an earlier step"
            problems.append(Problem(code="reserved_column", message=message, path=path, hint=hint))
    if problems:
        raise Invalid(*problems)
    return shapes


@lru_cache(maxsize=256)
def _fault(program: Program) -> tuple[int, str] | None:
    """The index of the script that can't be loaded, and the reason; None if all can be loaded."""
    sandbox = Sandbox(program)
    try:
        sandbox.open()
    except Unloadable as error:
        return error.source, error.message
    finally:
        sandbox.close()
    return None
