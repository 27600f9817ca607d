"""V8 in its own process, so that a Spark task survives the crash of a script's engine.

Run as a program by `sandbox`. Messages are JSON, preceded by their length. The first message is the program,
and the response reports whether it is ready; every other message is a batch. After a limit was reached, the
context is discarded, and a second response reports whether the program is ready again.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import struct
import sys
import time
from pathlib import Path
from typing import IO, Any

from py_mini_racer import DEFAULT_V8_FLAGS as FLAGS
from py_mini_racer import JSEvalException, JSParseException, MiniRacer, init_mini_racer

PRELUDE = "prelude.js"
LENGTH = struct.Struct("<Q")
SHORTEST_NAP = 0.001
"""Minimum seconds between two checks of the clock, when a limit is near."""

EXPORT = re.compile(
    r"^([ \t]*)export[ \t]+(?:default[ \t]+)?((?:async[ \t]+)?(?:function|const|let|var|class)[ \t]+(\w+))",
    re.MULTILINE,
)
PLACE = re.compile(r"<anonymous>:(\d+): (.*)")


class Limit(Exception):
    """A limit was reached; the context must not be used again."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Unloadable(Exception):
    """The program can't be loaded."""

    def __init__(self, source: int, message: str) -> None:
        super().__init__(source, message)
        self.source, self.message = source, message


class Engine:
    """One program in a context."""

    def __init__(self, program: dict[str, Any]) -> None:
        self.program = program
        limits = program["limits"]
        self.cpu, self.wall = limits["cpu_ms"] / 1000, limits["timeout_ms"] / 1000
        self.memory = limits["mem_mb"]
        # Near this size V8 collects garbage often, which is when MiniRacer checks its limit. A script that
        # allocates far more at once ends the process.
        init_mini_racer(flags=(*FLAGS, f"--max-heap-size={self.memory * 5 // 4 + 16}"))

    async def open(self) -> None:
        """Create a new context and load the program."""
        # Inside a running event loop MiniRacer uses that loop, and starts no thread.
        self.racer = MiniRacer()
        self.racer.set_hard_memory_limit(self.memory * 2**20)
        self.used = False
        await self.racer.eval_cancelable(prelude())
        for i, (name, source) in enumerate(self.program["sources"]):
            await self._define(i, name, source)
        config = json.dumps({key: self.program[key] for key in ("input", "output", "meta", "sinks")})
        try:
            self.process = await self._limited(self.racer.eval_cancelable(f"$start({config})"))
        except JSEvalException as error:
            raise Unloadable(0, _first_line(error)) from None

    async def run(self, text: str) -> str:
        """The response of the script to a batch."""
        try:
            answer = await self._limited(self.process.cancelable()(text))
        except Limit as limit:
            if limit.code != "js_memory_limit" or not self.used:
                raise
            # V8 also counts memory of earlier batches: only a new context shows what this batch needs.
            self.close()
            await self.open()
            answer = await self._limited(self.process.cancelable()(text))
        self.used = True
        return str(answer)

    def close(self) -> None:
        """Discard the context. Waits for calls that V8 does not interrupt."""
        self.racer.close()

    async def _define(self, index: int, name: str, source: str) -> None:
        """Load a script; an ES module is converted to assignments to `exports`."""
        try:
            await self._eval(index, name, source)
        except JSParseException as error:
            exported = [found[3] for found in EXPORT.finditer(source)]
            if not exported or "Unexpected token 'export'" not in str(error):
                raise Unloadable(index, _syntax(error)) from None
            members = "".join(f";exports.{each} = {each}" for each in exported)
            try:
                await self._eval(index, name, EXPORT.sub(r"\1\2", source) + f"\n{members}")
            except JSParseException as again:
                raise Unloadable(index, _syntax(again)) from None

    async def _eval(self, index: int, name: str, source: str) -> None:
        end = "" if index else ";return typeof processBatch === 'function' ? processBatch : undefined"
        body = f"function (module, exports, require) {{{source}\n{end}}}"
        code = f"$define({index}, {json.dumps(name)}, {body})\n//# sourceURL=penstock:{index}"
        await self.racer.eval_cancelable(code)

    async def _limited(self, call: Any) -> Any:
        """The result of a call into V8, which is canceled when it takes too long.

        The processor time of this process is that of V8: everything else in the process is waiting.
        """
        task = asyncio.ensure_future(call)
        cpu, wall = time.process_time() + self.cpu, time.monotonic() + self.wall
        try:
            while True:
                # Processor time does not pass faster than the clock, so no limit can be reached earlier.
                left = min(cpu - time.process_time(), wall - time.monotonic())
                done, _ = await asyncio.wait([task], timeout=max(left, SHORTEST_NAP))
                if done:
                    return task.result()
                if time.process_time() >= cpu:
                    raise Limit("js_cpu_limit")
                if time.monotonic() >= wall:
                    raise Limit("js_timeout")
        except JSEvalException:
            if self.racer.was_hard_memory_limit_reached():
                raise Limit("js_memory_limit") from None
            raise
        finally:
            task.cancel()


def prelude() -> str:
    """The script that wraps the user's script, from a file or, on an executor, from an archive."""
    place = Path(__file__).with_name(PRELUDE)
    if place.exists():
        return place.read_text()
    from importlib.resources import files

    return (files(__package__) / PRELUDE).read_text()


def _syntax(error: JSParseException) -> str:
    """`line 3: SyntaxError: …`."""
    found = PLACE.search(str(error))
    return f"line {found[1]}: {found[2]}" if found else _first_line(error)


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return text.partition(": Error: ")[2] or text


async def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Respond to one message after the other, until the input ends."""
    program = read(source)
    if program is None:
        return
    engine = Engine(json.loads(program))
    if not await _opened(engine, target):
        return
    while (message := read(source)) is not None:
        try:
            answer = await engine.run(message.decode())
            write(target, answer.encode())
        except Limit as limit:
            write(target, json.dumps({"code": limit.code}).encode())
            engine.close()
            if not await _opened(engine, target):
                return


async def _opened(engine: Engine, target: IO[bytes]) -> bool:
    """Create the context and report whether it is ready."""
    try:
        await engine.open()
        answer: dict[str, Any] = {"ready": True}
    except Unloadable as error:
        answer = {"source": error.source, "message": error.message}
    except Limit as limit:
        message = f"the script reached a limit before its first event ({limit.code})"
        answer = {"source": 0, "message": message}
    write(target, json.dumps(answer).encode())
    return "ready" in answer


def read(source: IO[bytes]) -> bytes | None:
    """Read a message; None at the end of the input."""
    head = source.read(LENGTH.size)
    return source.read(*LENGTH.unpack(head)) if len(head) == LENGTH.size else None


def write(target: IO[bytes], message: bytes) -> None:
    """Send a message."""
    target.write(LENGTH.pack(len(message)))
    target.write(message)
    target.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent; stdin closes when it exits
    asyncio.run(serve(sys.stdin.buffer, sys.stdout.buffer))
