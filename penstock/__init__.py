"""Penstock: streaming data pipelines on Apache Spark."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Read when it is asked for: each of Spark's Python processes imports this, and none asks.
    if name == "__version__":
        from importlib.metadata import version

        return version("penstock")
    raise AttributeError(name)
