"""Every parser that meets bytes from outside: whatever is sent, the answer is no 500, and comes soon."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator

import httpx
import psutil
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.control.wire.tokens import Tokens
from penstock.streams.frames import Body
from penstock.streams.remote.messages import pack, pack_appends, unpack, unpack_appends
from penstock.streams.storage import Append
from tests.api.kit import Api, stream

EXAMPLES = 2_000 if os.environ.get("PENSTOCK_TEST_NIGHTLY") else 25
several = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

TYPES = [
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "text/plain",
    "application/vnd.apache.arrow.stream",
    "application/octet-stream",
    "application/xml",
    "",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def arrow() -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"n": pa.array(range(5)), "s": pa.array(["x"] * 5)})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


SEEDS = [b'{"n": 1}', b'[{"n": 1}, {"n": 2}]', b"n,s\n1,a\n", b'{"n":1}\n{"n":2}\n', arrow()]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid body with some of its bytes replaced, cut off or repeated; or any bytes at all."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=300))
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data) * 2


@pytest.fixture(scope="module")
def fuzzed(server: Api) -> Iterator[httpx.Client]:
    for each in (stream("raw"), stream("typed", schema="n BIGINT, s STRING")):
        assert server.client.post("/streams", json=each).status_code == 201
    yield server.client
    server.service.import_([], "replace", dry_run=False)


def fine(answer: httpx.Response) -> None:
    assert answer.status_code < 500, (answer.status_code, answer.text[:300])


@several
@given(
    body=damaged(),
    kind=st.sampled_from(TYPES),
    coding=st.sampled_from(["", "gzip", "zstd", "br", "gzip, gzip"]),
)
def test_bodies_of_events(fuzzed: httpx.Client, body: bytes, kind: str, coding: str) -> None:
    headers = {
        name: text for name, text in {"Content-Type": kind, "Content-Encoding": coding}.items() if text
    }
    for content in (body, gzip.compress(body)):
        for name in ("raw", "typed"):
            fine(fuzzed.post(f"/streams/{name}/events", content=content, headers=headers))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bombs_are_not_inflated(fuzzed: httpx.Client, coding: str) -> None:
    size = 512 * 1024 * 1024
    if coding == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    else:
        bomb = pa.compress(bytes(size), codec="zstd", asbytes=True)
    before = psutil.Process().memory_info().rss
    answer = fuzzed.post("/streams/raw/events", content=bomb, headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert psutil.Process().memory_info().rss - before < 200e6


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "[" * 100_000,
        '{"a":' * 50_000,
        "- " * 50_000 + "x",
        "&a [*a]",
        "1" * 10_000,
        "!!python/object:x {}",
    ],
    ids=["laughs", "lists", "mappings", "dashes", "cycle", "digits", "tag"],
)
def test_bombs_of_documents(fuzzed: httpx.Client, text: str) -> None:
    for path in ("/streams", "/bundle", "/validate"):
        answer = fuzzed.post(path, content=text)
        assert 400 <= answer.status_code < 500, (path, answer.text[:200])


@several
@given(value=VALUES, text=st.binary(max_size=200))
def test_documents(fuzzed: httpx.Client, value: object, text: bytes) -> None:
    spec = {"kind": "Pipeline", "metadata": {"name": "x"}, "spec": value, "status": "paused"}
    for body in (json.dumps(value).encode(), json.dumps(spec).encode(), text):
        fine(fuzzed.post("/bundle?dry_run=true", content=body))
        fine(fuzzed.post("/validate", content=body))


@several
@given(text=st.text(max_size=40), number=st.integers())
def test_parameters(fuzzed: httpx.Client, text: str, number: int) -> None:
    for params in ({"position": text}, {"position": f"offset:{number}"}, {"position": f"time:{text}"}):
        fine(fuzzed.get("/streams/raw/events", params=params))
    for path, name in (("/streams/raw/events", "last"), ("/streams", "offset"), ("/pipelines", "limit")):
        fine(fuzzed.get(path, params={name: str(number)}))
        fine(fuzzed.get(path, params={name: text}))
    fine(fuzzed.get("/streams", params={"search": text, "label": text, "sort": text}))


METHODS = [
    "bounds",
    "spans",
    "fetch",
    "write",
    "move_cursor",
    "count",
    "progress",
    "offset_at",
    "wait",
    "nothing",
]


@several
@given(method=st.sampled_from(METHODS), value=VALUES, raw=st.binary(max_size=100))
def test_messages_of_workers(
    server: Api, fuzzed: httpx.Client, method: str, value: object, raw: bytes
) -> None:
    token = Tokens(server.service.registry).make()
    directory = server.service.streams.place("raw").directory
    path = f"/wire/streams/raw/{directory.name}/{method}"
    for message in (raw, pack(value), pack([value]), pack([value, value])):
        fine(fuzzed.post(path, content=message, headers={"Authorization": f"Bearer {token}"}))


@several
@given(raw=st.binary(max_size=200), value=VALUES)
def test_messages(raw: bytes, value: object) -> None:
    whole = pack_appends([Append([Body(b"abc", 1, 3)])])
    for message in (raw, pack(value), pack([value]), pack(value, [raw]), whole[:-1], whole + raw):
        for read in (unpack, unpack_appends):
            try:
                read(message)
            except ValueError:
                continue
