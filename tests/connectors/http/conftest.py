"""Servers of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server
