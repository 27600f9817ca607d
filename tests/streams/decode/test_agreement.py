"""The fast ways give what the exact one gives: no other value, no other fault."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from penstock.streams.decode import Decoded, Misfit, columns, decode, decode_alone, json_body
from penstock.streams.decode.json_body import BLANK
from penstock.streams.decode.values import form_of, rows_of
from penstock.streams.events import RAW, payload_schema
from tests.streams.decode.strategies import lines

SCHEMAS = [
    "id BIGINT, user STRING NOT NULL, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE",
    "t TINYINT, s SMALLINT, i INT, f FLOAT, d DOUBLE, ok BOOLEAN, raw BINARY",
    "a DECIMAL(5,2), b DECIMAL(38,0), c DECIMAL(38,38), e DECIMAL(38,10), d DOUBLE",
    "tags ARRAY<STRING>, n ARRAY<ARRAY<INT>>, f ARRAY<FLOAT>, when ARRAY<TIMESTAMP>",
    "s STRUCT<x: INT NOT NULL, y: STRUCT<day: DATE, b: BINARY>>, l ARRAY<STRUCT<f: FLOAT, d: DECIMAL(4,1)>>",
    "m MAP<STRING, INT>, k MAP<BIGINT, STRUCT<x: DATE>>, id BIGINT",
]
each_schema = pytest.mark.parametrize("schema", [payload_schema(ddl) for ddl in SCHEMAS], ids=SCHEMAS)
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(relaxed, max_examples=30)


def usable(texts: list[bytes]) -> list[bytes]:
    """As `decode_lines` hands them on."""
    return [text for raw in texts for line in raw.split(b"\n") if (text := line.strip(BLANK))]


@each_schema
@relaxed
@given(data=st.data())
def test_columns_are_what_the_events_one_by_one_give(schema: pa.Schema, data: st.DataObject) -> None:
    texts = usable(data.draw(st.lists(lines(schema), min_size=1, max_size=2)))
    if not texts:
        return
    try:
        fast = columns.read_json(texts, schema)
    except columns.Unsure:
        event("left to the exact way")
        return
    event("fast")
    exact = json_body._each(texts, rows_of(schema), range(len(texts)))
    assert exact.misfits == []
    assert fast.equals(exact.batch)
    fast.validate(full=True)


@each_schema
@few
@given(data=st.data())
def test_a_body_is_the_sum_of_its_lines(schema: pa.Schema, data: st.DataObject) -> None:
    """Whichever way it went."""
    some = data.draw(
        st.lists(lines(schema).map(lambda line: line.replace(b"\n", b" ")), min_size=1, max_size=3)
    )
    check_sum(some * 20, schema)


@few
@given(
    some=st.lists(lines(payload_schema(SCHEMAS[0])).map(lambda line: line.replace(b"\n", b" ")), max_size=3)
)
def test_a_raw_body_is_the_sum_of_its_lines(some: list[bytes]) -> None:
    check_sum(some * 20, None)


def check_sum(texts: list[bytes], schema: pa.Schema | None) -> None:
    found = json_body.decode_lines(b"\n".join(texts), schema)
    parts = [json_body.decode_lines(text, schema) for text in texts]
    assert found.batch.schema.equals(schema or RAW)
    found.batch.validate(full=True)
    if parts:
        assert found.batch.equals(pa.concat_batches([part.batch for part in parts]))
    assert found.misfits == [
        Misfit(number, misfit.value, misfit.code, misfit.reason)
        for number, part in enumerate(parts, 1)
        for misfit in part.misfits
    ]


@each_schema
@few
@given(data=st.data())
def test_an_array_has_the_events_of_its_elements(schema: pa.Schema, data: st.DataObject) -> None:
    check_array(data, schema)


@few
@given(data=st.data())
def test_a_raw_array_has_the_texts_of_its_elements(data: st.DataObject) -> None:
    check_array(data, None)


@pytest.mark.parametrize("ddl", [None, *SCHEMAS])
@few
@given(data=st.data())
def test_single_events_are_what_their_bodies_give(ddl: str | None, data: st.DataObject) -> None:
    """One by one, and as the batch that they make together."""
    schema = None if ddl is None else payload_schema(ddl)
    form, batches, loaded = form_of(schema), [], []
    for body in data.draw(st.lists(lines(schema or payload_schema(SCHEMAS[4])), min_size=1, max_size=5)):
        alone = decode_alone("application/json", body, form, "iso")
        whole = decode(body, "application/json", schema)
        if alone is None:
            event("left to the general way")
            continue
        event("alone")
        assert whole.misfits == []
        assert form.batch([alone.value]).equals(whole.batch)
        batches.append(whole.batch)
        loaded.append(alone.value)
    if loaded:
        together = form.batch(loaded)
        assert together.equals(pa.concat_batches(batches))
        together.validate(full=True)


def check_array(data: st.DataObject, schema: pa.Schema | None) -> None:
    """A body that looks like an array is taken apart exactly as JSON has it, or refused as a whole."""
    some = data.draw(st.lists(lines(schema or payload_schema(SCHEMAS[4])), min_size=1, max_size=3))
    comma = data.draw(st.sampled_from([b",", b", ", b" ,\r\n"]))
    body = b"[ " + comma.join(some * 20) + b"]"
    found = json_body.decode_document(body, schema)
    expected = exactly(lambda: json_body.split(body), body, schema)
    assert found.misfits == expected.misfits
    assert found.batch.equals(expected.batch)


def exactly(split: Callable[[], list[bytes]], body: bytes, schema: pa.Schema | None) -> Decoded:
    try:
        texts = split()
    except json_body.Mismatch as mismatch:
        return json_body.broken(body, schema, mismatch)
    numbers = range(1, len(texts) + 1)
    return json_body._each(texts, form_of(schema), numbers)
