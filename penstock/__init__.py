"""Penstock: streaming data pipelines on Apache Spark."""

from importlib.metadata import version

__version__ = version("penstock")
