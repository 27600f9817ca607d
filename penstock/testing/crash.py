"""Processes that die where they are told: kill -9 at a named place, for tests of what must survive it."""

from __future__ import annotations

import os
import signal
from functools import wraps
from typing import Any

VARIABLE = "CRASH_AT"
"""`before:method:N` or `after:method:N`: the process dies at the Nth call of that method."""


def arm(*classes: type) -> None:
    """Let this process die at the method that the environment names, if one of these classes has it."""
    when, _, rest = os.environ.get(VARIABLE, "").partition(":")
    name, _, number = rest.partition(":")
    for cls in classes:
        if name and hasattr(cls, name):
            _mine(cls, name, when, int(number))


def _mine(cls: Any, name: str, when: str, number: int) -> None:
    method, calls = getattr(cls, name), [0]

    @wraps(method)
    def mined(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if when == "before" and calls[0] == number:
            _die()
        result = method(*args, **kwargs)
        if when == "after" and calls[0] == number:
            _die()
        return result

    setattr(cls, name, mined)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
