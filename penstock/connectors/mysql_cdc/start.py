"""The start position of a flow in the binary log."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from penstock.connectors.mysql_cdc.catalog import Catalog, no_log
from penstock.connectors.mysql_cdc.position import Place
from penstock.errors import Invalid

_PATTERN = r"^(earliest|latest|gtid:[0-9A-Fa-f:,\-]*|file:[^:]+:[0-9]+)$"


def _checked(text: str) -> str:
    if "${" not in text and not re.match(_PATTERN, text):
        raise ValueError(
            f"'{text}' is not a valid position: use earliest, latest, gtid:0-1-42 or "
            "file:mysql-bin.000003:4711"
        )
    return text


StartText = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": _PATTERN})]
"""A start position as written in a document."""


def place_of(text: str, catalog: Catalog) -> Place:
    """The place in the log of a start position."""
    if text == "latest":
        place = catalog.place()
        if place is None:
            raise Invalid(no_log("position"))
        return place
    if text == "earliest":
        return catalog.place_at(catalog.logs()[0][0], 4, catalog.variable("gtid_purged") or "")
    kind, _, rest = text.partition(":")
    if kind == "gtid":
        return Place("", 0, rest)
    file, _, pos = rest.rpartition(":")
    if catalog.mariadb:
        return catalog.place_at(file, int(pos))
    return Place(file, int(pos))
