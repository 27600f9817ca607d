"""JSON Schema: violations in JSON texts, found in Spark's Python workers."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import pydantic_core

from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 10
"""Maximum number of violations reported for one event."""


@lru_cache(maxsize=32)
def _validator(schema: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(json.loads(schema), validate_formats=True, retriever=_refuse)


def check(schema: str, field: str) -> None:
    """Raises `Invalid` at `field` if the text is not a valid JSON Schema."""
    try:
        _validator(schema)
    except ValueError as error:
        message = str(error).splitlines()[0]
        raise Invalid(
            Problem(code="invalid_json_schema", message=f"not a valid JSON Schema: {message}", path=field)
        ) from None


def violations(schema: str, texts: pa.Array) -> pa.Array:
    """The violations of each text; empty if it is valid. Null is valid."""
    import pyarrow as pa

    validator = _validator(schema)
    # Bytes, since the strings of a raw stream may not be valid UTF-8.
    values = texts.cast(pa.binary()).to_pylist()
    return pa.array(
        [_wrong(validator, value) for value in values], pa.list_(pa.field("element", pa.string()))
    )


def _wrong(validator: Any, text: bytes | None) -> list[str]:
    if text is None:
        return []
    try:
        value = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return [f"not JSON: {error}"]
    if validator.is_valid(value):
        return []
    found = []
    for violation in validator.iter_errors(value):
        found.append(f"/{'/'.join(map(str, violation.instance_path))}: {violation.message}")
        if len(found) == MOST:
            break
    return found


def _refuse(uri: str) -> NoReturn:
    """Reject a reference to a remote schema: the schema could change, or come from anyone."""
    raise ValueError(f"{uri} is not part of the schema")
