from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

from penstock.connectors import stream_reader
from penstock.connectors.stream_batches import Limits
from penstock.connectors.stream_reader import StreamReader, options
from tests.flows import Streams


def test_the_first_answer_of_a_reader_does_not_wait_for_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT")
    limits = Limits(10, 2**20, 50, False, 1)
    reading = options(streams.place("in").directory, "reader", 1, "earliest", None, "skip", limits, raw=False)
    reader = StreamReader(json.loads(reading["reading"]), StructType([StructField("id", LongType())]))
    monkeypatch.setattr(stream_reader, "PATIENCE_S", 60.0)
    began = time.monotonic()
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, ReadAllAvailable()) == begin
    assert time.monotonic() - began < 30
