"""Connections to servers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import pytest

from penstock.connectors.remote import wait_readable


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose reading end has a descriptor that `select.select` refuses."""
    low, writer = os.pipe()
    reader = fcntl.fcntl(low, fcntl.F_DUPFD, 1500)
    os.close(low)
    yield reader, writer
    os.close(reader)


def test_waits_for_a_descriptor_above_1023(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    assert reader > 1023
    assert not wait_readable(reader, 0.01)
    os.write(writer, b"x")
    assert wait_readable(reader, 5)
    assert os.read(reader, 10) == b"x"
    assert not wait_readable(reader, -1)
    os.close(writer)
    assert wait_readable(reader, 5), "the end of the input counts as readable"
