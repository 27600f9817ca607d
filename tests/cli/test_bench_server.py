"""`penstock bench NAME`: a document of a real server whose worker runs nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from penstock.control.documents.service import Service
from tests.api.kit import open_service, pipeline, running, stream, working
from tests.cli.conftest import Started
from tests.cli.test_client import penstock, told, write
from tests.cli.test_plans import place, service  # noqa: F401 (fixtures)

HTTP = {"type": "http", "path": "/sales", "schema": "id BIGINT"}


@pytest.fixture
def numbers(
    service: Service,  # noqa: F811
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Service:
    """A pipeline of two revisions over a stream of ten events; commands use the Spark of the tests."""
    monkeypatch.setattr("penstock.cli.sessions.Starting", lambda *_: Started(spark))
    if service.registry.find("Pipeline", "numbers") is None:
        fill(3, 7)
    return service


def fill(*revisions: int) -> None:
    """Save a pipeline, each of whose revisions lets other numbers pass, and send it 0 to 9."""
    for least in revisions:
        step = {"id": "large", "type": "filter", "where": f"cast(value AS INT) >= {least}"}
        lake = {"type": "file", "path": "out", "format": "json"}
        source = {"type": "stream", "stream": "raw"}
        document = pipeline("numbers", source=source, processors=[step], sinks=[lake])
        applied = penstock("apply", write("n.yaml", stream("raw"), document))
        assert applied.exit_code == 0, applied.output
    Path("ten").write_text("".join(f"{n}\n" for n in range(10)))
    assert penstock("stream", "produce", "raw", "--file", "ten").exit_code == 0


@pytest.mark.slow
def test_a_pipeline_of_a_server_on_its_own_stream(numbers: Service) -> None:
    before = numbers.streams.log("raw").storage.cursors()
    found = told("bench", "numbers", "--home", str(numbers.settings.home))
    assert found["document"] == "numbers revision 2"
    assert (found["input"]["kind"], found["counted"], found["balance"]["out"]) == ("recorded", 10, 3)
    assert numbers.streams.log("raw").storage.cursors() == before
    assert not Path("out").exists()
    assert [each.id for each in numbers.list("Pipeline").items] == ["numbers"]


@pytest.mark.slow
def test_events_that_were_pushed_to_it(numbers: Service) -> None:
    assert penstock("apply", write("s.yaml", pipeline("sales", source=HTTP))).exit_code == 0
    events = [{"id": n} for n in range(5)]
    httpx.post(f"{os.environ['PENSTOCK_SERVER']}/ingest/sales", json=events).raise_for_status()
    found = told("bench", "sales", "--home", str(numbers.settings.home))
    assert (found["input"]["kind"], found["counted"], found["balance"]["out"]) == ("recorded", 5, 5)
    assert penstock("delete", "pipeline", "sales", "--yes").exit_code == 0


@pytest.mark.slow
def test_two_revisions(numbers: Service) -> None:
    home = ("--home", str(numbers.settings.home))
    found = told("bench", "numbers", "--revision", "1", "--rounds", "1", *home)
    out = {name: [run["balance"]["out"] for run in runs] for name, runs in found["runs"].items()}
    assert out == {"first": [3], "again": [3], "second": [7]}


@pytest.mark.slow
def test_a_worker_measures_events_of_another_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.sessions.Starting", lambda *_: Started(spark))
    with open_service(tmp_path / "home") as far, working(far, spark), running(far) as api:
        monkeypatch.setenv("PENSTOCK_SERVER", api.url)
        fill(7)
        found = told("bench", "numbers", "--events", "8", "--home", str(tmp_path / "elsewhere"))
        assert (found["input"]["events"], found["events"], found["mismatches"]) == (8, 8, [])
        assert (found["balance"]["out"], found["balance"]["dropped"]) == (3, 5)
        assert [step["id"] for step in found["steps"]] == ["large"]
        assert (found["cpu_us_per_event"], found["spark_start_s"]) == (None, None)
        assert [each.id for each in far.list("Pipeline").items] == ["numbers"], "the replay is deleted"
    assert not Path("out").exists()


def test_a_comparison_needs_the_events_here(numbers: Service, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "elsewhere"))
    done = penstock("bench", "numbers", "--revision", "1", *home, "--json")
    assert (done.exit_code, json.loads(done.stdout)["code"]) == (1, "not_local")
    assert penstock("bench", "unknown").exit_code == 1


def test_a_worker_is_not_asked_to_write_letters(numbers: Service, tmp_path: Path) -> None:
    source = {"type": "stream", "stream": "raw"}
    document = pipeline("lettered", source=source, dead_letters="letters")
    assert penstock("apply", write("l.yaml", stream("letters"), document)).exit_code == 0
    done = penstock("bench", "lettered", "--home", str(tmp_path / "elsewhere"), "--json")
    assert (done.exit_code, json.loads(done.stdout)["code"]) == (1, "writes_streams")
    assert penstock("delete", "pipeline", "lettered", "--yes").exit_code == 0
