"""Penstock: streaming data pipelines on Apache Spark."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Read on demand: each of Spark's Python processes imports this module, and none needs the version.
    if name == "__version__":
        from importlib.metadata import version

        return version("penstock")
    raise AttributeError(name)
