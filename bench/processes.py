"""Processor time and memory of a process and all those below it."""

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
    """Seconds of processor time of the family, including that of its members which have ended."""
    used = 0.0
    for member in family(process):
        with suppress(psutil.Error):  # it may just have ended
            used += sum(member.cpu_times()[:4])  # the last two are of children that have ended
    return used


def pss(process: psutil.Process) -> int:
    """Bytes of memory of the family: pages that several processes share count once."""
    held = 0
    for member in family(process):
        with suppress(psutil.Error):
            held += int(member.memory_full_info().pss)
    return held
