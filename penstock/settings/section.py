"""What sections of settings share."""

from __future__ import annotations

import os
import re

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def lowered(value: object) -> object:
    """A choice as a variable may spell it."""
    return value.lower() if isinstance(value, str) else value


def split_words(value: object) -> object:
    """A list that a variable has in one text, separated by commas or spaces."""
    return [word for word in re.split(r"[,\s]+", value) if word] if isinstance(value, str) else value


def split_paths(value: object) -> object:
    """A list of paths that a variable has in one text, as `PATH` has them."""
    return [path for path in value.split(os.pathsep) if path] if isinstance(value, str) else value
