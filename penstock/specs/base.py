"""The base classes of all declared models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A declared model: unknown fields are errors, types are exact, values never change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class Component(Spec):
    """A source, sink or processor of one `type`.

    The class is the only description of its fields: validation, JSON Schema, forms, reference pages and
    the command line's help are all generated from it. Its docstring is its documentation.
    """

    example: ClassVar[str] = ""
    """A YAML fragment for the reference; validated by the test suite."""

    def task_paths(self) -> Iterable[tuple[str, str]]:
        """The paths of files that Spark's tasks open, each with its field: all executors must have access."""
        return ()
