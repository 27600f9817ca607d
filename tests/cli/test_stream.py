"""`penstock stream …` against a real server, and on the files of a home."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.cli.text import duration, size
from penstock.streams.local.segments import list_segments
from penstock.streams.storage import Cursor
from tests.api.kit import Api, judging, open_service, running, stream
from tests.cli.commands import Penstock

SCHEMA = "id BIGINT, name STRING"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with (
        open_service(tmp_path_factory.mktemp("streams")) as service,
        judging(service),
        running(service) as found,
    ):
        yield found


@pytest.fixture
def api(server: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Api]:
    monkeypatch.setenv("PENSTOCK_SERVER", server.url)
    monkeypatch.setenv("PENSTOCK_HOME", str(server.service.settings.home))
    monkeypatch.chdir(tmp_path)
    server.client.post("/streams", json=stream("Typed", schema=SCHEMA))
    server.client.post("/streams", json=stream("plain"))
    yield server
    server.service.import_([], "replace", dry_run=False)


def penstock(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["stream", *arguments], input=stdin)


def told(*arguments: str, stdin: str | bytes | None = None, code: int = 0) -> Any:
    result = penstock(*arguments, "--json", stdin=stdin)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def lines(*ids: Any) -> str:
    return "".join(json.dumps({"id": id, "name": f"n{id}"}) + "\n" for id in ids)


def test_produce_tells_the_offsets(api: Api) -> None:
    done = penstock("produce", "Typed", stdin=lines(1, 2, 3))
    assert done.exit_code == 0, done.output
    assert done.stdout == "Typed 3 events appended, offsets 0 to 2\n"
    more = told("produce", "typed", "--batch", "2", stdin=lines(*range(5)))
    assert (more["accepted"], more["first"], more["next"]) == (5, 3, 8)
    assert told("produce", "typed", stdin="")["accepted"] == 0


def test_produce_takes_files_of_every_format(api: Api, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "name": ["a", "b", 'c "x"\nd']})
    with pa.ipc.new_stream(tmp_path / "e.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "e.json").write_text(json.dumps(table.to_pylist()))
    (tmp_path / "e.ndjson").write_text("\n".join(map(json.dumps, table.to_pylist())))
    (tmp_path / "e.csv").write_bytes(b'id,name\r\n1,a\r\n2,b\r\n3,"c ""x""\nd"\r\n')
    for format in ("arrow", "json", "ndjson", "csv"):
        done = told("produce", "typed", "--file", f"e.{format}", "--format", format, "--batch", "1")
        assert (done["accepted"], done["misfits"]) == (3, 0)
    found = api.client.get("/streams/typed/events").json()["events"]
    assert [event["columns"] for event in found] == table.to_pylist() * 4

    (tmp_path / "e.txt").write_text("one\ntwo\n")
    assert told("produce", "plain", "-f", "e.txt", "--format", "text", "--key", "k")["next"] == 2
    first = api.client.get("/streams/plain/events").json()["events"][0]
    assert (first["value"], first["key"]) == ("one", "k")
    assert penstock("produce", "plain", "-f", "missing").exit_code == 2
    assert penstock("produce", "plain", "--format", "arrow", stdin="no arrow").exit_code == 2


def test_what_does_not_fit_is_told(api: Api) -> None:
    bad = lines(1) + "nothing\n" + lines(2)
    done = penstock("produce", "typed", stdin=bad)
    assert done.exit_code == 1
    assert "error[not_json] line 2:" in done.stderr
    assert "1 event did not match the schema; kept in typed.dead" in done.stderr
    assert "2 events appended" in done.stdout
    stopped = told("produce", "typed", "--atomic", "--batch", "2", stdin=bad + lines(3), code=1)
    assert (stopped["accepted"], stopped["misfits"]) == (0, 1)
    assert told("produce", "nowhere", stdin=lines(1), code=1)["code"] == "not_found"
    assert told("produce", "typed", "--format", "text", stdin="x", code=1)["code"]


def test_produce_waits_while_a_stream_is_full(api: Api) -> None:
    wal = {"max_segments": 2, "segment_bytes": 2000, "on_full": "block", "compression": "none"}
    api.client.post("/streams", json=stream("narrow", wal=wal, buffer={"timeout_ms": 50}))
    log = api.service.streams.log("narrow")
    log.move_cursor(Cursor("slow", 0))

    ended = threading.Event()

    def read_on() -> None:
        time.sleep(2.5)
        while not ended.wait(0.1):
            log.move_cursor(Cursor("slow", log.bounds().next))

    reader = threading.Thread(target=read_on)
    reader.start()
    body = "".join(json.dumps({"n": n, "text": "x" * 80}) + "\n" for n in range(60))
    done = told("produce", "narrow", "--batch", "5", stdin=body)
    ended.set()
    reader.join()
    assert (done["accepted"], done["next"]) == (60, 60)
    assert done["waited_s"] > 0


def test_lists_and_numbers(api: Api) -> None:
    penstock("produce", "typed", stdin=lines(1, 2, 3))
    api.service.streams.log("typed").move_cursor(Cursor("somebody", 1, at=time.time()))
    table = penstock("ls").stdout
    assert table.split()[:3] == ["NAME", "EVENTS", "SIZE"]
    assert "Typed" in table
    items = {item["name"]: item for item in told("ls")["items"]}
    assert (items["Typed"]["events"], items["plain"]["events"]) == (3, 0)

    page = penstock("inspect", "Typed").stdout
    assert "3, offsets 0 to 3" in page
    assert "survives a killed process" in page
    assert "somebody" in page
    assert "2 events" in page
    assert told("inspect", "typed")["readers"][0]["lag_events"] == 2
    assert penstock("inspect", "nothing").exit_code == 1


def test_tail_shows_the_last_events_and_goes_on(api: Api) -> None:
    penstock("produce", "typed", stdin=lines(1, 2, 3))
    shown = penstock("tail", "typed", "--last", "2")
    assert shown.exit_code == 0, shown.output
    assert [line.split(" ", 2)[2] for line in shown.stdout.splitlines()] == [
        '{"id": 2, "name": "n2"}',
        '{"id": 3, "name": "n3"}',
    ]
    more = [{"id": 4, "name": "n4"}, {"id": 5, "name": "n5"}]
    # Not by a command: two at once in one process would mix up their outputs.
    threading.Timer(0.5, lambda: api.client.post("/streams/typed/events", json=more)).start()
    result = penstock("tail", "typed", "--last", "1", "--follow", "--limit", "3", "--json")
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [2, 3, 4]
    filtered = penstock("tail", "typed", "--position", "earliest", "--filter", "n4", "--limit", "1", "--json")
    assert json.loads(filtered.stdout)["columns"]["id"] == 4
    assert penstock("tail", "typed", "--last", "1", "--position", "latest").exit_code == 2
    assert penstock("tail", "nothing", "--limit", "1").exit_code == 1
    assert penstock("tail", "typed", "--position", "x").exit_code == 3


def test_tail_ends_with_ctrl_c(api: Api, tmp_path: Path) -> None:
    penstock("produce", "typed", stdin=lines(1))
    shell = Penstock(tmp_path)
    shell.env["PENSTOCK_SERVER"] = api.url
    process = shell.start("stream", "tail", "typed", "--position", "earliest", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["offset"] == 0
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "1 event shown" in err


def test_tail_goes_on_when_the_server_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.stream_server.RETRY_S", 0.1)
    seen: list[str] = []
    with open_service(tmp_path) as service:
        service.registry.create(stream("numbers"))
        with running(service) as api:
            port = httpx.URL(api.url).port
            api.client.post("/streams/numbers/events", json=1)

            def watch() -> None:
                result = CliRunner().invoke(
                    app,
                    [
                        "stream",
                        "tail",
                        "numbers",
                        "--position",
                        "earliest",
                        "--limit",
                        "2",
                        "--json",
                        "--server",
                        api.url,
                    ],
                )
                seen.append(result.stdout)

            watcher = threading.Thread(target=watch)
            watcher.start()
            time.sleep(1)
        again = service.settings.model_copy(update={"port": port})
        service.settings = again
        with running(service) as api:
            api.client.post("/streams/numbers/events", json=2)
            watcher.join(20)
        assert not watcher.is_alive()
    assert [json.loads(line)["value"] for line in seen[0].splitlines()] == ["1", "2"]


# The files


def test_a_sound_stream_is_verified(api: Api) -> None:
    penstock("produce", "typed", stdin=lines(1, 2, 3) + "nothing\n")
    done = penstock("verify")
    assert done.exit_code == 0, done.output
    assert "typed sound: 3 events" in done.stdout
    assert "typed.dead sound: 1 event" in done.stdout
    (only,) = told("verify", "Typed")["items"]
    assert (only["stream"], only["sound"], only["events"], only["faults"]) == ("typed", True, 3, [])
    assert penstock("verify", "nothing").exit_code == 1


def damage(api: Api, name: str) -> Path:
    """Flip a bit in the middle of the second of three frames of a stream."""
    for id in (1, 2, 3):
        penstock("produce", name, stdin=lines(id))
    api.service.streams.log(name).storage.flush()
    (path,) = list_segments([api.service.streams.place(name).directory]).values()
    data = bytearray(path.read_bytes())
    data[data.index(b"n2")] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    return path


def test_damage_is_named_and_mended(api: Api) -> None:
    api.client.patch("/streams/typed", json={"wal": {"compression": "none"}})
    damage(api, "typed")
    found = penstock("verify", "typed")
    assert found.exit_code == 1
    assert "offsets 1 to 1" in found.stdout
    assert "penstock stream repair" in found.stderr
    (item,) = told("verify", "typed", code=1)["items"]
    assert [(fault["first"], fault["next"]) for fault in item["faults"]] == [(1, 2)]

    exported = penstock("export", "typed")
    assert exported.exit_code == 1
    assert [json.loads(line)["id"] for line in exported.stdout.splitlines()] == [1, 3]
    assert "offsets 1 to 1 could not be read" in exported.stderr

    (mended,) = told("repair", "typed")["items"]
    assert mended["lost"] == [{"first": 1, "next": 2}]
    assert mended["kept"]
    assert told("verify", "typed")["items"][0]["sound"]
    assert penstock("repair", "typed").stdout.startswith("typed nothing to repair")
    assert penstock("produce", "typed", stdin=lines(4)).stdout.endswith("offsets 3 to 3\n")


def test_events_are_exported(api: Api, tmp_path: Path) -> None:
    penstock("produce", "typed", stdin=lines(1, 2, 3))
    assert penstock("export", "typed", "-o", "e.parquet", "--format", "parquet", "--details").exit_code == 0
    table = pa.parquet.read_table(tmp_path / "e.parquet")
    assert table.column("_offset").to_pylist() == [0, 1, 2]
    some = penstock("export", "typed", "--position", "offset:1", "--until", "2", "--format", "csv")
    assert some.stdout.splitlines()[1:] == ['2,"n2"'] or some.stdout.splitlines()[1:] == ["2,n2"]
    done = told("export", "typed", "-o", "e.ndjson")
    assert (done["events"], done["lost"]) == (3, [])
    assert penstock("export", "typed", "--json").exit_code == 2
    assert penstock("export", "typed", "--position", "x").exit_code == 2


def test_files_are_found_without_a_server(tmp_path: Path) -> None:
    with open_service(tmp_path / "home") as service:
        service.registry.create(stream("Typed", schema=SCHEMA))
        with running(service) as api:
            api.client.post("/streams/typed/events", json={"id": 1})
        service.streams.stop()
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", "stream", "verify", "--home", str(tmp_path / "home")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "typed sound: 1 event" in done.stdout
    none = CliRunner().invoke(app, ["stream", "verify", "--home", str(tmp_path / "other")])
    assert none.exit_code == 2
    assert not (tmp_path / "other").exists()


def test_words_for_numbers() -> None:
    assert [size(n) for n in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
    assert [duration(n) for n in (3, 2_500, 7_300_000)] == ["3 ms", "2 s", "2 h"]
