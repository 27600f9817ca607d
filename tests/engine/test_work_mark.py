"""The work mark of a flow: what the next process learns of one that died."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from penstock.engine.runtime.work_mark import FILE, WorkMark


def process(directory: Path) -> WorkMark:
    """The mark as another process opens it."""
    return WorkMark(directory, uuid.uuid4().hex[:8])


def died(directory: Path) -> str | None:
    """The problem that a new process finds in the mark of the last one."""
    mark = process(directory)
    problem = mark.take_up()
    mark.close()
    return problem and problem.message


def test_only_a_process_that_was_at_work_on_the_flow_counts(tmp_path: Path) -> None:
    assert died(tmp_path) is None
    process(tmp_path).start()
    assert died(tmp_path) == "the worker died while this flow was starting"
    assert died(tmp_path) is None, "no process has begun anything since"
    mark = process(tmp_path)
    mark.start()
    mark.delivering(True)
    mark.answered()
    assert died(tmp_path) == "the worker died while this flow was processing a batch, 2 times in a row"
    mark = process(tmp_path)
    mark.start()
    mark.answered()
    assert died(tmp_path) is None, "it had no batch"
    mark.delivering(True)
    mark.delivering(False)
    assert died(tmp_path) is None, "the batch was delivered"
    assert process(tmp_path).deaths == 2
    process(tmp_path).forgive()
    assert process(tmp_path).deaths == 0


def test_what_a_process_has_left_itself_it_has_survived(tmp_path: Path) -> None:
    WorkMark(tmp_path).start()
    assert WorkMark(tmp_path).take_up() is None
    assert WorkMark(tmp_path).deaths == 0


@pytest.mark.parametrize("content", [b"", b"d", b"\xff\xfe garbage", b"dxxxxx\n"])
def test_a_mark_that_cannot_be_read_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    mark = WorkMark(tmp_path)
    assert mark.deaths == 0
    mark.rest()
    assert (tmp_path / FILE).read_bytes()[:7] == b"r00000 "
