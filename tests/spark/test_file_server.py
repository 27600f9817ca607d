"""The server of the driver's files: what executors may read and write, and that requests can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.spark import file_server
from penstock.spark.file_server import FileServer


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("streams", "flows", "flows/spool", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"0123456789")
    return tmp_path


@pytest.fixture
def client(places: Path) -> Iterator[httpx.Client]:
    server = FileServer("127.0.0.1", 0, [f"{places}/streams/", f"{places}/flows/"])
    headers = {"Authorization": f"Bearer {server.secret}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers, trust_env=False) as made:
        yield made
    server.stop()


def ranged(client: httpx.Client, path: Path | str, at: int, size: int) -> tuple[int, bytes]:
    answer = client.get("/", params={"path": str(path), "at": at, "size": size})
    return answer.status_code, answer.content


def test_ranges_of_a_file(client: httpx.Client, places: Path) -> None:
    file = places / "streams" / "file"
    assert ranged(client, file, 2, 3) == (200, b"234")
    assert ranged(client, file, 8, 100) == (200, b"89"), "shorter than asked for"
    assert ranged(client, file, 10, 5) == (200, b""), "the end"
    assert ranged(client, places / "streams" / "gone", 0, 5)[0] == 404


def test_nothing_without_the_secret(client: httpx.Client, places: Path) -> None:
    params = {"path": str(places / "streams" / "file"), "at": "0", "size": "3"}
    for given in ("", "Bearer", "Bearer wrong"):
        answer = client.get("/", params=params, headers={"Authorization": given})
        assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.parametrize("path", ["other/file", "streams/../other/file", "streams/link", "streams-too/file"])
def test_no_other_files(client: httpx.Client, places: Path, path: str) -> None:
    (places / "streams" / "link").symlink_to(places / "other" / "file")
    (places / "streams-too").mkdir()
    (places / "streams-too" / "file").write_text("secret")
    assert ranged(client, f"{places}/{path}", 0, 5) == (403, b"")


@pytest.mark.parametrize("name", ["streams", "flows"])
def test_only_pages_are_written(client: httpx.Client, places: Path, name: str) -> None:
    file = places / name / "file"
    assert client.put("/", params={"path": str(file), "at": 0}, content=b"x").status_code == 403
    moved = client.post("/move", params={"path": str(file), "to": str(places / "flows" / "spool" / "file")})
    assert moved.status_code == 403
    assert file.read_bytes() == b"0123456789"


def test_a_page_is_written_in_parts_and_appears_at_the_end(client: httpx.Client, places: Path) -> None:
    spool = places / "flows" / "spool"
    half, whole = str(spool / "page.half"), str(spool / "page")
    for _ in range(2):  # a request may be repeated, as its sender does not know whether it has arrived
        for at, part in ((0, b""), (0, b"abc"), (3, b"def")):
            assert client.put("/", params={"path": half, "at": at}, content=part).status_code == 200
    names = client.get("/names", params={"path": str(spool)})
    assert sorted(names.text.split("\n")) == ["file", "page.half"]
    for _ in range(2):
        assert client.post("/move", params={"path": half, "to": whole}).status_code == 200
    assert Path(whole).read_bytes() == b"abcdef"
    assert client.delete("/", params={"path": str(places / "streams" / "file")}).status_code == 403
    for _ in range(2):
        assert client.delete("/", params={"path": half}).status_code == 200
    assert not Path(half).exists()


def test_a_request_that_is_too_large(
    client: httpx.Client, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_server, "LARGEST", 4)
    path = places / "flows" / "spool" / "page"
    for _ in range(2):  # the next request is understood
        assert client.put("/", params={"path": str(path), "at": 0}, content=b"12345").status_code == 413
        assert client.put("/", params={"path": str(path), "at": 0}, content=b"1234").status_code == 200
    assert path.read_bytes() == b"1234"
    assert ranged(client, places / "streams" / "file", 0, 10) == (200, b"0123"), "as much as there may be"


def test_a_page_of_a_computation_that_has_ended_goes_nowhere(client: httpx.Client, places: Path) -> None:
    """Its task runs on an executor that the driver has given up."""
    path = str(places / "flows" / "spool" / "ended" / "page.half")
    assert client.put("/", params={"path": path, "at": 0}, content=b"abc").status_code == 404
    assert not (places / "flows" / "spool" / "ended").exists()
