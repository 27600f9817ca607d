"""Results of appends on their way from threads to the event loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from penstock.api.awaited import Awaited, Results
from penstock.streams.storage import Appended

THREADS, EACH = 8, 200


def test_every_result_arrives_whichever_threads_report_at_once() -> None:
    async def run() -> list[Appended]:
        results = Results(asyncio.get_running_loop())
        entries = [Awaited(1, 1, results=results) for _ in range(THREADS * EACH)]

        def report(first: int) -> None:
            for number in range(first, len(entries), THREADS):
                entries[number].tell(Appended(number, number + 1))
                if number % 7 == 0:
                    time.sleep(0)  # lets another thread, or the loop, go on in between

        async def wait(entry: Awaited) -> Appended:
            assert await entry.settled(60)
            return entry.result()

        waiting = [asyncio.ensure_future(wait(entry)) for entry in entries]
        await asyncio.sleep(0)
        threads = [threading.Thread(target=report, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        found = await asyncio.wait_for(asyncio.gather(*waiting), 30)
        for thread in threads:
            thread.join()
        return found

    found = asyncio.run(run())
    assert found == [Appended(number, number + 1) for number in range(THREADS * EACH)]


def test_a_wait_ends_in_time_and_can_be_repeated() -> None:
    async def run() -> None:
        entry = Awaited(1, 1, results=Results(asyncio.get_running_loop()))
        assert not await entry.settled(0.01)
        entry.refuse(OSError("no room"))
        assert await entry.settled(60)
        with pytest.raises(OSError, match="no room"):
            entry.result()

    asyncio.run(run())


def test_a_result_after_the_end_of_the_loop_is_dropped() -> None:
    async def made() -> Awaited:
        return Awaited(1, 1, results=Results(asyncio.get_running_loop()))

    asyncio.run(made()).tell(Appended(0, 1))


def test_a_cancelled_request_is_not_in_the_way_of_its_result() -> None:
    async def run() -> None:
        results = Results(asyncio.get_running_loop())
        gone, here = Awaited(1, 1, results=results), Awaited(1, 1, results=results)
        waiting = [asyncio.ensure_future(entry.settled(60)) for entry in (gone, here)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gone.tell(Appended(0, 1))
        here.tell(Appended(1, 2))
        assert await waiting[1]
        assert here.result() == Appended(1, 2)

    asyncio.run(run())
