"""A secret that flows use is found nowhere: not in answers, files, logs, letters or on Spark's pages."""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from tests.cli.commands import PATIENCE_S, wait_for
from tests.http_server import Said, serving
from tests.product import Product

pytestmark = pytest.mark.slow

CANARY = "Tweety-7f3a/v=19&49{seq}$"
"""With a column in braces, which stands for itself in a secret."""
SPELLINGS = ("Tweety-7f3a", "v=19&49", "v%3D19")
"""Parts of it are enough."""

USE = "${secret:canary}"
RESTART = {"backoff_ms": 100, "max_attempts": 3}
SOURCE = {"type": "generate", "count": 3}
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    env = {
        "PENSTOCK_POLICY_SPARK_FORMATS": "jdbc,rate,json",
        "PENSTOCK_SPARK_UI_ENABLED": "true",
        "PENSTOCK_SPARK_UI_PORT": "0",
        "PENSTOCK_LOG_LEVEL": "debug",
    }
    found = Product(tmp_path_factory.mktemp("canary"), env=env)
    try:
        found.up()
        secret = {"metadata": {"name": "canary"}, "spec": {"value": CANARY}}
        assert found.client.post("/secrets", json=secret).status_code == 201
        yield found
    finally:
        found.close()


def pipeline(name: str, sink: dict[str, Any], *steps: dict[str, Any], **source: Any) -> dict[str, Any]:
    spec = {"source": source or SOURCE, "processors": list(steps), "sinks": [sink], "restart": RESTART}
    return {"metadata": {"name": name}, "spec": spec}


def test_a_secret_reaches_its_system_and_nothing_else(product: Product) -> None:
    with serving(lambda asked: Said(f"no entry for {asked.headers.get('Authorization')}", 400)) as server:
        flows = _flows(server.url)
        for each in flows:
            answer = product.client.post("/pipelines", json=each)
            assert answer.status_code == 201, answer.text
            _clean("answer", answer.text)
        files = {"type": "file", "path": f"{USE}/in", "format": "json", "schema": "a INT", "finite": True}
        answer = product.client.post("/pipelines", json=pipeline("files", {"type": "drop"}, **files))
        assert "nothing found at '***/in'" in answer.json()["message"]
        probe = {"role": "sink", "spec": {"type": "http", "url": f"{NOWHERE}/{USE}"}}
        answer = product.client.post("/connectors/http/check", json=probe)
        assert answer.json()["problems"], answer.text
        _clean("check", answer.text)
        wait_for("the end of all flows", lambda: _all_ended(product))
        assert any(asked.headers.get("Authorization") == f"Bearer {CANARY}" for asked in server.asked)
        assert {unquote(asked.path) for asked in server.asked} >= {f"/{CANARY}/{n}" for n in range(3)}
        assert {asked.headers.get("X-Key") for asked in server.asked} >= {f"{CANARY}-{n}" for n in range(3)}
    assert product.get("failing")["error"], "an error text with the URL in it"
    for place, text in itertools.chain(_answers(product), _spark_pages(product), _files(product.directory)):
        _clean(place, text)
    assert product.process is not None
    product.process.send_signal(signal.SIGTERM)
    for text in product.process.communicate(timeout=PATIENCE_S):
        _clean("output and log", text)


def _flows(url: str) -> list[dict[str, Any]]:
    drop = {"type": "drop"}
    jdbc = {"url": f"jdbc:postgresql://127.0.0.1:1/x?password={USE}", "dbtable": "t", "password": USE}
    login = {"headers": {"Authorization": f"Bearer {USE}"}}
    sql = {"type": "sql", "url": "postgresql://127.0.0.1:1/x", "table": "t", "password": USE}
    return [
        pipeline("refused", {"type": "http", "url": f"{url}/{{seq}}", **login}),
        pipeline("failing", {"type": "http", "url": f"{NOWHERE}/{USE}", "timeout_ms": 500}),
        pipeline(
            "told", {"type": "http", "url": f"{url}/{USE}/{{seq}}", "headers": {"X-Key": f"{USE}-{{seq}}"}}
        ),
        pipeline("database", sql),
        pipeline("spark", {"type": "spark", "format": "jdbc", "options": jdbc}),
        pipeline("asking", drop, {"type": "http", "url": f"{url}/{USE}", **login}),
        pipeline("unanswered", drop, {"type": "http", "url": f"{NOWHERE}/{USE}", "timeout_ms": 500}),
        pipeline(
            "broker",
            {
                "type": "redis",
                "address": "127.0.0.1:1",
                "key": "x",
                "security": {"login": {"username": "me", "password": USE}},
            },
        ),
    ]


def _all_ended(product: Product) -> bool:
    found = product.client.get("/pipelines").json()["items"]
    return all(each["status"] in ("failed", "completed") or each["error"] for each in found)


def _clean(place: str, text: str) -> None:
    for spelling in SPELLINGS:
        at = text.find(spelling)
        assert at < 0, f"{place}: …{text[max(0, at - 200) : at + 60]}…"


def _answers(product: Product) -> Iterator[tuple[str, str]]:
    """The answers of all routes that show something, for all documents."""
    document = product.client.get("/openapi.json").json()
    names = {
        place: [each["id"] for each in product.client.get(f"/{place}").json()["items"]]
        for place in ("pipelines", "streams", "sources", "tasks", "sinks", "secrets")
    }
    for path, operations in document["paths"].items():
        if "get" not in operations or path.endswith(("/tail", "/follow")) or path == "/events":
            continue
        place = path.split("/")[1]
        for name in names.get(place, [""]) if "{name}" in path else [""]:
            url = path.replace("{name}", name).replace("{number}", "1").replace("{offset}", "0")
            with contextlib.suppress(httpx.ReadTimeout):
                yield url, product.client.get(url, timeout=20).text
    for name in names["pipelines"]:
        for stream in (f"pipeline:{name}.dead", f"pipeline:{name}.in"):
            yield stream, product.client.get(f"/streams/{stream}/events").text


def _spark_pages(product: Product) -> Iterator[tuple[str, str]]:
    """Spark's own pages, as far as links lead."""
    (worker,) = product.client.get("/workers").json()
    first = worker["info"]["spark_ui"]
    assert first, worker
    seen, open_ = {first}, [first]
    while open_ and len(seen) < 300:
        page = httpx.get(open_.pop(), trust_env=False, timeout=20, follow_redirects=True)
        yield str(page.url), page.text
        for link in _links(page):
            if link not in seen and urlsplit(link).netloc == urlsplit(first).netloc and "kill" not in link:
                seen.add(link)
                open_.append(link)
    assert len(seen) > 10


def _links(page: httpx.Response) -> list[str]:
    return [str(page.url.join(link)) for link in re.findall(r'href="([^"#]+)"', page.text)]


def _files(directory: Path) -> Iterator[tuple[str, str]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes().decode("utf-8", "replace")
