"""The fields that `decode` and `encode` share: which format, and what each format wants to know."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from penstock.errors import Invalid, Problem
from penstock.processors.base import BatchProcessor
from penstock.processors.formats.registry import RegistrySpec
from penstock.processors.support.files import read_file
from penstock.specs.reach import FilePath

OPTIONS = {
    "delimiter": ("csv",),
    "null_text": ("csv",),
    "pair_separator": ("kv",),
    "key_separator": ("kv",),
    "timestamps": ("json", "csv", "kv", "regex", "grok"),
    "pattern": ("regex", "grok"),
    "patterns": ("grok",),
    "schema_file": ("avro", "protobuf"),
    "message": ("protobuf",),
    "framing": ("avro", "protobuf"),
    "registry": ("avro", "protobuf"),
}
"""The formats for which a field has a meaning."""


class FormatProcessor(BatchProcessor):
    """A step that reads or writes one of the formats."""

    network: ClassVar[bool] = True

    type: str
    # Before the options, so that each of them can be judged by it.
    format: str = Field(description="Format of the value.")
    delimiter: str = Field(
        default=",", min_length=1, max_length=1, description="`csv`: separator between fields."
    )
    null_text: str = Field(default="", description="`csv`: text that represents null.")
    pair_separator: str = Field(
        default=" ",
        min_length=1,
        description="`kv`: separator between pairs; a space matches any number of spaces.",
    )
    key_separator: str = Field(
        default="=", min_length=1, description="`kv`: separator between a name and its value."
    )
    schema_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="`avro`: a schema (`.avsc`). `protobuf`: a descriptor set, as written by `protoc "
        "--include_imports --descriptor_set_out`. Read when the pipeline starts.",
    )
    message: str | None = Field(
        default=None, description="`protobuf`: full name of the message; not needed if there is only one."
    )
    framing: Literal["none", "registry"] | None = Field(
        default=None,
        description="Whether values begin with the header of a schema registry. Default: `registry` if a "
        "registry is set, otherwise `none`.",
    )
    registry: RegistrySpec | None = Field(
        default=None, description="Schema registry compatible with Confluent's."
    )

    _schema: bytes | None = PrivateAttr(default=None)

    @field_validator(*OPTIONS, check_fields=False)
    @classmethod
    def _has_a_meaning(cls, value: Any, info: ValidationInfo) -> Any:
        chosen = info.data.get("format")
        if chosen is not None and value is not None and chosen not in OPTIONS[info.field_name or ""]:
            raise ValueError(f"can't be used with format '{chosen}'")
        return value

    def asks(self) -> bool:
        return self.registry is not None

    @property
    def framed(self) -> bool:
        """Whether values begin with a header."""
        return (self.framing or ("registry" if self.registry else "none")) == "registry"

    def load(self) -> None:
        """Read the file with the schema, so that it travels with the step."""
        if self.schema_file is not None:
            self._schema = read_file(self.schema_file, "schema_file")

    def avro_schema(self) -> Any | None:
        """What the file says, for Avro."""
        from penstock.processors.formats import avro

        return avro.parse(self._schema) if self._schema is not None else None

    def message_type(self) -> Any:
        """What the file says, for protobuf."""
        from penstock.processors.formats import protobuf

        if self._schema is None:
            raise needed("schema_file", "format 'protobuf' needs a descriptor set")
        return protobuf.message_type(self._schema, self.message)


def needed(field: str, message: str) -> Invalid:
    """A field that is missing for this format."""
    return Invalid(Problem(code="missing_field", message=message, path=field, hint=f"add '{field}'"))
