"""A Delta table: its location, how it is opened, and its errors."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from penstock.connectors.file.paths import is_local, qualified
from penstock.connectors.probe import Probe
from penstock.errors import Invalid, PenstockError, Problem, Retryable, Unavailable
from penstock.specs.base import Component
from penstock.specs.reach import ClientOptions, FilePath

if TYPE_CHECKING:
    from deltalake import DeltaTable

TESTED = "delta-rs 1.6 (package deltalake)"

QUICK = {"connect_timeout": "2s", "timeout": "4s", "retry_timeout": "4s", "max_retries": "1"}
"""Options of object stores for a connection test, which has to finish within seconds."""

MISSING = re.compile(r"No files in log segment|does not exist or you don't have access")

SECRET = re.compile(r"(?i)key|secret|token|password|credential|sas")
"""Matches the names of options whose values must not be shown."""

LONGEST = 400
"""Maximum length of a message. Longer messages are cut in the middle, because the cause is at the end."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class DeltaEnd(Component):
    """The location of a Delta table."""

    path: FilePath = Field(
        min_length=1, description="The table's directory, or its URL in an object store, such as `s3://…`."
    )
    options: ClientOptions = Field(
        default_factory=dict,
        description="Options of the object store, such as `AWS_ENDPOINT_URL` or `AWS_SECRET_ACCESS_KEY`; "
        "use `${NAME}` to read a value from an environment variable.",
    )

    @property
    def uri(self) -> str:
        """The location in the form that the library expects."""
        return qualified(self.path)

    def opened(self, extra: Mapping[str, str] | None = None) -> DeltaTable | None:
        """The current table; None if it doesn't exist."""
        return opened(self.uri, {**self.options, **(extra or {})})

    def probed(self) -> tuple[DeltaTable | None, Probe]:
        """The table, if there is one, and the result of a connection test."""
        quick = {} if is_local(self.path) else QUICK
        try:
            table = self.opened(quick)
        except PenstockError as error:
            return None, Probe(problems=error.problems)
        return table, Probe(offers={} if table is None else {"columns": columns_of(table)})


def opened(uri: str, options: Mapping[str, str]) -> DeltaTable | None:
    """The table at a location; None if it doesn't exist."""
    library()
    from deltalake import DeltaTable

    if is_local(uri) and os.path.exists(uri) and not os.path.isdir(uri):
        message = f"'{uri}' is a file, not the directory of a table"
        raise Invalid(Problem(code="not_a_directory", message=message, path="path", hint="use a directory"))
    try:
        with explained(uri, options):
            return DeltaTable(uri, storage_options=dict(options))
    except _Missing:
        return None


def library() -> None:
    """Raises `Invalid` if the library for Delta tables is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        message = "the library for Delta tables is not installed"
        hint = "run pip install 'penstock[delta]' where the flow runs"
        raise Invalid(Problem(code="library_missing", message=message, path="type", hint=hint)) from None


def columns_of(table: DeltaTable) -> list[str]:
    """The columns of a table, each with its type."""
    return [f"{field.name} {field.type}" for field in schema_of(table)]


def schema_of(table: DeltaTable) -> Any:
    """The columns of a table as an Arrow schema."""
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def not_found(path: str) -> Problem:
    """The problem for a table that doesn't exist and must not be created."""
    hint = "check the path; a table has a directory _delta_log"
    return Problem(
        code="table_not_found", message=f"there is no Delta table at '{path}'", path="path", hint=hint
    )


class _Missing(Retryable):
    """The table doesn't exist."""


@contextlib.contextmanager
def explained(uri: str, options: Mapping[str, str]) -> Iterator[None]:
    """Raise the library's errors as Penstock errors; `Invalid` if a retry can't help."""
    from deltalake.exceptions import (
        CommitFailedError,
        DeltaError,
        DeltaProtocolError,
        SchemaMismatchError,
        TableNotFoundError,
    )

    try:
        yield
    except TableNotFoundError as error:
        if MISSING.search(str(error)):
            raise _Missing("the table at this path no longer exists") from None
        hint = "check the path, and that the worker may write there"
        raise Invalid(_problem("path_unusable", _text(error, options), hint)) from None
    except CommitFailedError as error:
        hint = "another writer changed the table; the write is retried"
        raise Unavailable(_problem("conflict", _text(error, options), hint)) from None
    except SchemaMismatchError as error:
        hint = "compare the columns of the events with those of the table"
        raise Invalid(_problem("schema_mismatch", _text(error, options), hint)) from None
    except DeltaProtocolError as error:
        hint = "the table uses a feature of Delta that is not supported"
        raise Invalid(_problem("unsupported_table", _text(error, options), hint)) from None
    except (DeltaError, OSError) as error:
        hint = "check the path and the options, and that the store is reachable from the worker"
        message = f"no access to '{uri}': {_text(error, options)}"
        raise Unavailable(_problem("storage_failed", message, hint)) from None


def _problem(code: str, message: str, hint: str) -> Problem:
    return Problem(code=code, message=message, path="path", hint=hint)


def _text(error: Exception, options: Mapping[str, str]) -> str:
    """The message of an error on one line, without the values of secret options."""
    text = " ".join(COLOUR.sub("", str(error)).replace("↳", ":").split())
    for name, value in options.items():
        if SECRET.search(name) and value:
            text = text.replace(value, "***")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
