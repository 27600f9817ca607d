"""The web app is served from what its build wrote, and browsers find it."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.api.accept import quality
from tests.api.kit import Api, codes, judging, open_service, running, stream

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
PAGE = b"<!doctype html><div id=root></div>"
SCRIPT = b"console.log('penstock')\n" * 100


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build writes, and something beside it that is nobody's business."""
    directory = tmp_path_factory.mktemp("web") / "ui"
    (directory / "assets").mkdir(parents=True)
    (directory / "index.html").write_bytes(PAGE)
    (directory / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (directory / "assets" / "index-a1.js").write_bytes(SCRIPT)
    (directory / "assets" / "index-a1.js.gz").write_bytes(gzip.compress(SCRIPT))
    (directory / "assets" / "index-b2.css").write_text("body {}")
    (directory.parent / "secret.txt").write_text("hush")
    (directory / "assets" / "link.txt").symlink_to(directory.parent / "secret.txt")
    return directory


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, built: Path) -> Iterator[Api]:
    """A server with a small web app."""
    with (
        open_service(tmp_path_factory.mktemp("home")) as service,
        judging(service),
        running(service, built) as found,
    ):
        yield found


@pytest.fixture
def client(web: Api) -> httpx.Client:
    return web.client


@pytest.mark.parametrize(
    "path", ["/ui", "/ui/", "/ui/index.html", "/ui/streams", "/ui/pipelines/orders.dead"]
)
def test_every_path_of_the_app_is_its_page(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    assert "unsafe-eval" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"


def test_the_page_is_not_sent_again_to_one_who_has_it(client: httpx.Client) -> None:
    tag = client.get("/ui/").headers["etag"]
    again = client.get("/ui/", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


def test_files_that_never_change_are_kept_for_ever(client: httpx.Client) -> None:
    for name, type in (("index-a1.js", "text/javascript"), ("index-b2.css", "text/css")):
        answer = client.get(f"/ui/assets/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == f"{type}; charset=utf-8"
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    icon = client.get("/ui/icon.svg")
    assert icon.headers["content-type"] == "image/svg+xml"
    assert icon.headers["cache-control"] == "no-cache"


def test_a_file_goes_out_packed_to_those_who_can_read_it(client: httpx.Client, built: Path) -> None:
    packed = client.get("/ui/assets/index-a1.js", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == (built / "assets" / "index-a1.js.gz").stat().st_size
    assert packed.content == SCRIPT
    for refusal in ("identity", "gzip;q=0"):
        plain = client.get("/ui/assets/index-a1.js", headers={"Accept-Encoding": refusal})
        assert "content-encoding" not in plain.headers
        assert plain.content == SCRIPT
        assert plain.headers["etag"] != packed.headers["etag"]
    assert "Accept-Encoding" in packed.headers["vary"]
    assert "Accept-Encoding" in plain.headers["vary"]


def test_head_tells_what_get_would_send(client: httpx.Client) -> None:
    answer = client.head("/ui/assets/index-a1.js", headers={"Accept-Encoding": "identity"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) == len(SCRIPT)


def test_a_file_that_is_missing_is_no_page(client: httpx.Client) -> None:
    answer = client.get("/ui/assets/index-c3.js", headers=BROWSER)
    assert answer.status_code == 404
    assert codes(answer) == ["not_found"]
    assert client.post("/ui/").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../secret.txt",
        "/ui/assets/../../secret.txt",
        "/ui/%2e%2e/secret.txt",
        "/ui/..%2fsecret.txt",
        "/ui/assets/..%5c..%5csecret.txt",
        "/ui/assets/link.txt",
        "/ui//etc/passwd",
        "/ui/%2fetc%2fpasswd",
        "/ui/%00",
        "/ui/assets/%00",
        "/ui/" + "x" * 5000,
    ],
)
def test_nothing_outside_the_app_is_served(web: Api, path: str) -> None:
    server = http.client.HTTPConnection(web.client.base_url.host, web.client.base_url.port, timeout=60)
    server.request("GET", path)  # unlike httpx, this sends the path as it is
    answer = server.getresponse()
    body = answer.read()
    server.close()
    assert body == PAGE or answer.status == 404
    assert b"hush" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/streams",
        "/streams?search=a%20b",
        "/pipelines/x%20%C3%A4",
        "/workers",
        "/settings",
        "/users",
        "/tokens",
        "/audit?user=anna",
    ],
)
def test_a_browser_is_shown_the_screen_of_a_path(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/ui{path}"
    assert "Accept" in answer.headers["vary"]


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "application/json, text/html", "text/plain"]
)
def test_everybody_else_gets_json(client: httpx.Client, accept: str | None) -> None:
    headers = {"Accept": accept} if accept else {}
    request = client.build_request("GET", "/streams", headers=headers)
    if accept is None:
        del request.headers["accept"]
    answer = client.send(request)
    assert answer.status_code == 200
    assert answer.json()["items"] == []
    assert "Accept" in answer.headers["vary"].split(", ")
    assert codes(client.get("/", headers=headers)) == ["not_found"]


@pytest.mark.parametrize("path", ["/docs", "/bundle", "/openapi.json", "/healthz", "/pipelines/x/revisions"])
def test_what_has_no_screen_is_shown_as_it_is(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    assert not answer.is_redirect
    assert answer.headers["content-type"].startswith(("application/", "text/html"))


def test_an_app_that_is_not_built_says_how_to(tmp_path: Path) -> None:
    with open_service(tmp_path) as service, running(service, tmp_path / "ui") as found:
        page = found.client.get("/ui/streams", headers=BROWSER)
        assert page.status_code == 503
        assert "make web" in page.text
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        answer = found.client.get("/ui/streams")
        assert answer.status_code == 503
        assert codes(answer) == ["no_web_app"]
        assert "make web" in answer.json()["hint"]
        assert found.client.get("/ui/assets/index-a1.js").status_code == 404
        (tmp_path / "ui").mkdir()
        (tmp_path / "ui" / "index.html").write_bytes(PAGE)
        assert found.client.get("/ui/streams").content == PAGE, "as soon as it is built"


def test_large_answers_are_packed(client: httpx.Client) -> None:
    large = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert large.headers["content-encoding"] == "gzip"
    assert int(large.headers["content-length"]) * 4 < len(large.content)
    assert "content-encoding" not in client.get("/openapi.json", headers={"Accept-Encoding": "br"}).headers
    assert "content-encoding" not in client.get("/healthz").headers


def test_answers_to_senders_of_events_are_not_packed(client: httpx.Client) -> None:
    client.post("/streams", json=stream("typed", schema="n INT"))
    wrong = "\n".join('{"n": "x"}' for _ in range(100))
    headers = {"Content-Type": "application/x-ndjson", "Accept-Encoding": "gzip"}
    answer = client.post("/streams/typed/events", content=wrong, headers=headers)
    assert (answer.status_code, answer.json()["misfits"]) == (400, 100)
    assert "content-encoding" not in answer.headers
    client.delete("/streams/typed")


def test_events_arrive_at_once_and_unpacked(client: httpx.Client) -> None:
    with client.stream("GET", "/events", headers={"Accept-Encoding": "gzip"}) as followed:
        assert "content-encoding" not in followed.headers
        lines = followed.iter_lines()
        assert next(lines) == ": connected"
        client.post("/streams", json=stream("fresh"))
        assert "event: created" in (next(lines) for _ in range(10))
    client.delete("/streams/fresh")


@pytest.mark.parametrize(
    ("header", "names", "expected"),
    [
        ("gzip", ("gzip", "*"), 1),
        ("GZIP ; q=0.5 , br", ("gzip", "*"), 0.5),
        ("*", ("gzip", "*"), 1),
        ("gzip;q=0, *", ("gzip", "*"), 0),
        ("text/html;level=1;q=0.3", ("text/html",), 0.3),
        ("gzip;q=much", ("gzip",), 0),
        ("", ("gzip",), 0),
    ],
)
def test_what_a_header_wishes(header: str, names: tuple[str, ...], expected: float) -> None:
    assert quality(header, *names) == expected
