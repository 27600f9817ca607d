from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.streams.decode import decode
from penstock.streams.schema import arrow_schema

DDL = "at TIMESTAMP, local TIMESTAMP_NTZ, s STRUCT<all: ARRAY<TIMESTAMP>>, m MAP<TIMESTAMP, TIMESTAMP>"
MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(("unit", "zeros"), [("epoch_s", ""), ("epoch_ms", "000"), ("epoch_us", "000000")])
@pytest.mark.parametrize("count", [1, 100])  # one by one, and by the column
def test_times_are_integers_where_the_document_says_so(unit: Any, zeros: str, count: int) -> None:
    at = f"1700000000{zeros}"
    text = f'{{"at": {at}, "local": "2026-01-31", "s": {{"all": [{at}]}}, "m": {{"2026-01-31": {at}}}}}\n'
    found = decode(text.encode() * count, "application/x-ndjson", arrow_schema(DDL), timestamps=unit)
    assert found.misfits == []
    assert found.batch.schema.equals(arrow_schema(DDL))
    row = found.batch.to_pylist()[-1]
    assert (row["at"], row["s"], row["local"]) == (MOMENT, {"all": [MOMENT]}, datetime(2026, 1, 31))
    assert row["m"] == [(datetime(2026, 1, 31, tzinfo=UTC), MOMENT)]
    lines = f"at\n{at}\n" + f"{at}\n" * count
    found = decode(lines.encode(), "text/csv", arrow_schema("at TIMESTAMP"), timestamps=unit)
    assert found.batch.column("at").to_pylist() == [MOMENT] * (count + 1)


def test_what_is_no_such_integer_is_refused_with_column_and_value() -> None:
    values = ['"2026-01-31T12:00:00Z"', "1.5", "true", "253402300800000", str(10**30)]
    body = "\n".join(f'{{"at": {value}}}' for value in values * 10)
    schema = arrow_schema("at TIMESTAMP")
    found = decode(body.encode(), "application/x-ndjson", schema, timestamps="epoch_ms")
    assert [m.code for m in found.misfits[:5]] == ["wrong_type"] * 3 + ["out_of_range"] * 2
    reason = (
        "column 'at' is \"2026-01-31T12:00:00Z\", not an integer, the milliseconds since 1970 (TIMESTAMP)"
    )
    assert found.misfits[0].reason == reason


def test_arrow_bodies_have_times_of_their_own() -> None:
    import pyarrow as pa

    schema = arrow_schema("at TIMESTAMP")
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([MOMENT], schema.types[0])], schema=schema))
    body = out.getvalue().to_pybytes()
    found = decode(body, "application/vnd.apache.arrow.stream", schema, timestamps="epoch_ms")
    assert found.batch.column("at").to_pylist() == [MOMENT]
