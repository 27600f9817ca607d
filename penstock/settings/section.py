"""The base class of sections of settings, and shared validators."""

from __future__ import annotations

import os
import re

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def lowered(value: object) -> object:
    """A choice in lower case: variables may use any case."""
    return value.lower() if isinstance(value, str) else value


def split_words(value: object) -> object:
    """A list; a variable contains it as one text, separated by commas or spaces."""
    return [word for word in re.split(r"[,\s]+", value) if word] if isinstance(value, str) else value


def split_paths(value: object) -> object:
    """A list of paths; a variable contains it as one text, separated as in `PATH`."""
    return [path for path in value.split(os.pathsep) if path] if isinstance(value, str) else value
