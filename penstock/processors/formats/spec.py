"""The fields that `decode` and `encode` share: the format, and the options of each format."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from penstock.errors import Invalid, Problem
from penstock.processors.base import BatchProcessor
from penstock.processors.formats.registry import RegistrySpec
from penstock.processors.support.files import read_file
from penstock.specs.conditions import condition_of, only_with
from penstock.specs.reach import FilePath

TEXT, BINARY = ["json", "csv", "kv", "regex", "grok"], ["avro", "protobuf"]


class FormatProcessor(BatchProcessor):
    """A step that reads or writes one of the formats."""

    network: ClassVar[bool] = True

    type: str
    # Before the options, so that each of them can be validated against it.
    format: str = Field(description="Format of the value.")
    delimiter: str = Field(
        default=",",
        min_length=1,
        max_length=1,
        description="Separator between fields.",
        json_schema_extra=only_with(format=["csv"]),
    )
    null_text: str = Field(
        default="", description="Text that represents null.", json_schema_extra=only_with(format=["csv"])
    )
    pair_separator: str = Field(
        default=" ",
        min_length=1,
        json_schema_extra=only_with(format=["kv"]),
        description="Separator between pairs; a space matches any number of spaces.",
    )
    key_separator: str = Field(
        default="=",
        min_length=1,
        description="Separator between a name and its value.",
        json_schema_extra=only_with(format=["kv"]),
    )
    schema_file: FilePath | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=only_with(format=BINARY),
        description="`avro`: a schema (`.avsc`). `protobuf`: a descriptor set, as written by `protoc "
        "--include_imports --descriptor_set_out`. Read when the pipeline starts.",
    )
    message: str | None = Field(
        default=None,
        description="Full name of the message; not needed if there is only one.",
        json_schema_extra=only_with(format=["protobuf"]),
    )
    framing: Literal["none", "registry"] | None = Field(
        default=None,
        json_schema_extra=only_with(format=BINARY),
        description="Whether values begin with the header of a schema registry. Default: `registry` if a "
        "registry is set, otherwise `none`.",
    )
    registry: RegistrySpec | None = Field(
        default=None,
        description="Schema registry compatible with Confluent's.",
        json_schema_extra=only_with(format=BINARY),
    )

    _schema: bytes | None = PrivateAttr(default=None)

    @field_validator("*")
    @classmethod
    def _has_an_effect(cls, value: Any, info: ValidationInfo) -> Any:
        chosen = info.data.get("format")
        formats = condition_of(cls.model_fields[info.field_name or ""]).get("format")
        if chosen is not None and value is not None and formats is not None and chosen not in formats:
            raise ValueError(f"can't be used with format '{chosen}'")
        return value

    def asks(self) -> bool:
        return self.registry is not None

    @property
    def framed(self) -> bool:
        """Whether values begin with a header."""
        return (self.framing or ("registry" if self.registry else "none")) == "registry"

    def load(self) -> None:
        """Read the file with the schema, so that it is sent to the tasks with the step."""
        if self.schema_file is not None:
            self._schema = read_file(self.schema_file, "schema_file")

    def avro_schema(self) -> Any | None:
        """The Avro schema in the file, or None."""
        from penstock.processors.formats import avro

        return avro.parse(self._schema) if self._schema is not None else None

    def message_type(self) -> Any:
        """The protobuf message type in the file."""
        from penstock.processors.formats import protobuf

        if self._schema is None:
            raise needed("schema_file", "format 'protobuf' needs a descriptor set")
        return protobuf.message_type(self._schema, self.message)


def needed(field: str, message: str) -> Invalid:
    """The error for a field that is required for this format."""
    return Invalid(Problem(code="missing_field", message=message, path=field, hint=f"add '{field}'"))
