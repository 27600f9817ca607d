"""The start position of a Kafka source: an end of the topics, a time, or offsets of their partitions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from penstock.specs.positions import parse_position

ENDS = {"earliest": -2, "latest": -1}
"""The ends of a partition in Spark's connector."""


def _checked(text: str) -> str:
    if parse_position(text).kind == "offset":
        raise ValueError("offsets are per partition: use {topic: {0: 42, 1: earliest}}")
    return text


Offset = Annotated[int, Field(ge=0)] | Literal["earliest", "latest"]
Partitions = dict[str | int, Offset]
KafkaPosition = Annotated[str, AfterValidator(_checked)] | dict[str, Partitions]


def options_of(position: str | Mapping[str, Mapping[str | int, int | str]]) -> dict[str, str]:
    """The options of Spark's connector for a position."""
    if isinstance(position, str):
        found = parse_position(position)
        if found.time is None:
            return {"startingOffsets": position}
        # Record times are in milliseconds: the first record at or after a finer time is in the next one.
        milliseconds = str(math.ceil(round(found.time.timestamp() * 1_000_000) / 1000))
        # If a partition has no later event, reading starts with its next new event.
        return {"startingTimestamp": milliseconds, "startingOffsetsByTimestampStrategy": "latest"}
    return {
        "startingOffsets": json.dumps(
            {
                topic: {str(number): ENDS.get(str(offset), offset) for number, offset in partitions.items()}
                for topic, partitions in position.items()
            }
        )
    }
