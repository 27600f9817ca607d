"""Processor time and memory of a process and all of its descendants."""

from __future__ import annotations

from contextlib import suppress

import psutil


def family(process: psutil.Process) -> list[psutil.Process]:
    """The process and its descendants; none if it has ended."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_s(process: psutil.Process) -> float:
    """Seconds of processor time of the family, including members that have ended."""
    used = 0.0
    for member in family(process):
        with suppress(psutil.Error):  # the process may just have ended
            used += sum(member.cpu_times()[:4])  # the last two are those of ended children
    return used


def pss(process: psutil.Process) -> int:
    """Bytes of memory of the family; pages shared by several processes count once."""
    held = 0
    for member in family(process):
        with suppress(psutil.Error):
            held += int(member.memory_full_info().pss)
    return held
