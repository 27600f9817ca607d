from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from penstock.errors import NotFound, Unavailable
from penstock.spark import jars
from penstock.spark.jars import SETS, Jar, JarCache, JarSet, maven_central

CONTENT = b"classes"
ONE = Jar("org.example", "one", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A Maven repository on loopback: its URL and its directory."""
    root = tmp_path / "repository"
    root.mkdir()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(root))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/maven/", root / "maven"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _one_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "SETS", {"one": JarSet("org.example.One", (ONE,))})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # no local Maven repository


def put(root: Path, content: bytes) -> None:
    (root / ONE.path).parent.mkdir(parents=True, exist_ok=True)
    (root / ONE.path).write_bytes(content)


def test_a_jar_is_downloaded_once_and_then_needs_no_repository(
    repository: tuple[str, Path], tmp_path: Path
) -> None:
    url, root = repository
    put(root, CONTENT)
    cache, told = JarCache(tmp_path / "cache", url), list[Jar]()
    assert cache.kept(ONE) is None
    (file,) = cache.fetch("one", told.append)
    assert file.read_bytes() == CONTENT
    assert told == [ONE]
    offline = JarCache(tmp_path / "cache", "http://127.0.0.1:9/")
    assert offline.kept(ONE) == file
    assert offline.fetch("one") == [file]


def test_a_jar_with_another_checksum_is_not_kept(repository: tuple[str, Path], tmp_path: Path) -> None:
    url, root = repository
    put(root, b"something else")
    with pytest.raises(Unavailable) as refused:
        JarCache(tmp_path / "cache", url).fetch("one")
    assert refused.value.problems[0].code == "jars_missing"
    assert "checksum" in refused.value.problems[0].message
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_damaged_jar_is_downloaded_again(repository: tuple[str, Path], tmp_path: Path) -> None:
    url, root = repository
    put(root, CONTENT)
    cache = JarCache(tmp_path / "cache", url)
    (file,) = cache.fetch("one")
    file.write_bytes(CONTENT[:3])
    assert cache.kept(ONE) is None
    cache.fetch("one")
    assert file.read_bytes() == CONTENT


def test_a_jar_of_the_local_maven_repository_is_copied(tmp_path: Path) -> None:
    put(tmp_path / "home" / ".m2" / "repository", CONTENT)
    (file,) = JarCache(tmp_path / "cache", "http://127.0.0.1:9/").fetch("one")
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "no-url", None])
def test_the_error_says_what_is_missing_and_what_to_do(
    url: str | None, repository: tuple[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(Unavailable) as refused:
        JarCache(tmp_path / "cache", url or repository[0]).fetch("one")  # the repository has no such jar
    (problem,) = refused.value.problems
    assert problem.code == "jars_missing"
    assert "one 1.0" in problem.message
    assert "jars.repository" in (problem.hint or "")


def test_an_unknown_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="did you mean 'one'"):
        JarCache(tmp_path).fetch("ome")


def test_maven_central_is_known_from_the_jars_of_spark() -> None:
    found = maven_central()
    assert found is not None
    assert found.startswith("https://")
    assert found.endswith("/maven2/")


def test_every_jar_is_pinned() -> None:
    for each in SETS.values():
        for jar in each.jars:
            assert len(bytes.fromhex(jar.sha256)) == 32, jar
