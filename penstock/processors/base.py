"""The base class of processors."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from penstock.specs.base import Component

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Processor(Component):
    """One transformation step: a DataFrame in, a DataFrame out.

    `apply` builds a plan and runs nothing. The frame may be a stream, or empty while a document is being
    validated, or a handful of sample events in a test run: a processor cannot tell and must not ask.
    """

    @abstractmethod
    def apply(self, df: DataFrame) -> DataFrame:
        """The transformed frame. Raises `Invalid`, with paths relative to this step, for what is wrong."""
