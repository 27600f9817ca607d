"""Checkpoints with files that a power cut has left empty or cut off."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.runtime.checkpoint_files import CheckpointFiles
from penstock.errors import Invalid
from penstock.processors.support.ticker import Clock
from tests.engine.test_streams import wait_for
from tests.flows import Streams, flow_of, json_rows, keeper, pipeline, run, running

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"offset": 5}\n{"logOffset": 0}\n'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


def checkpoint(directory: Path, **files: str) -> CheckpointFiles:
    """A checkpoint with a batch that is committed, one that is not, and other files."""
    sound = {
        "metadata": '{"id":"7"}',
        "offsets/0": OFFSETS,
        "offsets/1": OFFSETS,
        "commits/0": COMMIT,
        "sources/1/0": "v1\n{}",
        "state/0/0/1.changelog": "sound",
    }
    for name, text in {**sound, **{name.replace("__", "/"): text for name, text in files.items()}}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return CheckpointFiles(str(directory))


def test_a_sound_checkpoint_stays_as_it_is(tmp_path: Path) -> None:
    assert checkpoint(tmp_path / "ck").repair() == []
    assert CheckpointFiles(str(tmp_path / "none")).repair() == []
    assert CheckpointFiles("s3a://bucket/ck").repair() == []


@pytest.mark.parametrize("left", ["", "v1", "v1\n", 'v1\n{"batch', "\0" * 40])
@pytest.mark.parametrize("name", ["offsets__2", "commits__0", "commits__1", "sources__1__1"])
def test_an_unreadable_file_of_an_unseen_batch_is_removed(tmp_path: Path, name: str, left: str) -> None:
    found = checkpoint(tmp_path / "ck", **{name: left})
    assert found.repair() == [name.replace("__", "/")]
    assert found.repair() == []


def test_what_steps_remember_of_a_batch_that_is_not_committed_may_be_empty(tmp_path: Path) -> None:
    found = checkpoint(tmp_path / "ck", **{"state__0__0__2.changelog": ""})
    assert found.repair() == ["state/0/0/2.changelog"]
    found.sync_state(0)
    with pytest.raises(Invalid, match=r"state/0/0/1\.changelog"):
        checkpoint(tmp_path / "other", **{"state__0__0__1.changelog": ""}).repair()


@pytest.mark.parametrize("left", ["", 'v1\n{"batch'])
@pytest.mark.parametrize("name", ["offsets__0", "metadata", "sources__1__0"])
def test_an_unreadable_file_that_is_needed_is_told(tmp_path: Path, name: str, left: str) -> None:
    with pytest.raises(Invalid) as caught:
        checkpoint(tmp_path / "ck", **{name: left}).repair()
    (problem,) = caught.value.problems
    assert problem.code == "checkpoint_damaged"
    assert f"the file {name.replace('__', '/')} of the checkpoint" in problem.message
    assert "remove the checkpoint" in (problem.hint or "")


def test_a_committed_batch_whose_offsets_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="offsets/1"):
        checkpoint(tmp_path / "ck", offsets__1="", commits__1=COMMIT).repair()


def test_a_checkpoint_in_which_no_batch_has_begun_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "metadata").write_text("")
    assert CheckpointFiles(str(tmp_path / "ck")).repair() == ["metadata"]
    assert not (tmp_path / "ck").exists()


@pytest.mark.parametrize("left", ["", "[]", '{"lineage"', '{"other": 1}'])
def test_a_clock_that_cannot_be_read_is_begun_anew(tmp_path: Path, left: str) -> None:
    clock = Clock(tmp_path)
    clock.saw("one", 3, {"latest": 7}, 5)
    assert clock.before("one", 4) == {"latest": 7}
    clock.path.write_text(left)
    assert clock.before("one", 4) == {}
    clock.saw("one", 4, {"latest": 9}, 5)
    assert clock.before("one", 5) == {"latest": 9}


@pytest.mark.slow
def test_a_flow_goes_on_after_a_power_cut_without_loss_or_repetition(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema="id BIGINT")
    out = tmp_path / "out"
    sinks = [{"type": "file", "path": str(out), "format": "json"}]
    raw = pipeline(source={"type": "stream", "stream": "in"}, sinks=sinks, batch={"max_ms": 10})
    directory = tmp_path / "ck" / flow_of(raw, streams.site()).position_key

    def append() -> list[int]:
        first = log.bounds().next
        log.append(pa.record_batch({"id": list(range(first, first + 5))}))
        return list(range(first + 5))

    def ids() -> list[int]:
        return sorted(row["id"] for row in json_rows(out))

    def goes_on() -> None:
        wanted = append()
        with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
            wait_for("events", lambda: len(ids()) >= len(wanted))
        assert ids() == wanted

    def newest(name: str) -> Path:
        return max((directory / name).glob("[0-9]*"), key=lambda path: int(path.name))

    goes_on()
    following = int(newest("offsets").name) + 1
    (directory / "offsets" / str(following)).write_text("")  # planned, and not yet seen by a sink
    goes_on()
    newest("commits").write_text("v1\n{")  # the batch is repeated under its number
    goes_on()
    kept = newest("offsets").read_text()
    newest("offsets").write_text("")
    state = run(spark, raw, tmp_path / "ck", streams.site())
    assert state.error is not None
    assert (state.outcome, state.error["code"], len(state.attempts)) == ("failed", "checkpoint_damaged", 1)
    newest("offsets").write_text(kept)
    goes_on()


def test_the_first_offsets_of_kafka_are_no_damaged_file(tmp_path: Path) -> None:
    """Spark's Kafka source begins its file with a zero byte; see KafkaSourceInitialOffsetWriter."""
    whole = '\0v1\n{"orders":{"0":12}}'
    assert checkpoint(tmp_path / "ck", sources__0__0=whole).repair() == []
    assert checkpoint(tmp_path / "cut", sources__0__0=whole[:10]).repair() == ["sources/0/0"]
