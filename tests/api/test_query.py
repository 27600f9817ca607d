"""Queries over HTTP and on the command line, answered by a worker with Spark."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.control.questions import saved_queries
from tests.api.kit import Api, codes, stream

QUERY = "SELECT customer, sum(amount) AS total FROM sales_of_may GROUP BY ALL ORDER BY total DESC"


@pytest.mark.slow
def test_streams_can_be_queried(live: Api) -> None:
    client = live.client
    client.post("/streams", json=stream("Sales of May", schema="customer STRING, amount INT"))
    rows = [("ada", 5), ("bob", 7), ("ada", 4), ("eve", None)]
    body = "\n".join(json.dumps({"customer": c, "amount": a}) for c, a in rows)
    type = {"Content-Type": "application/x-ndjson"}
    assert client.post("/streams/sales_of_may/events", content=body, headers=type).status_code == 200

    def ask(sql: str, **limits: int) -> httpx.Response:
        return client.post("/query", json={"sql": sql, "timeout_ms": 120_000, **limits})

    found = ask(QUERY)
    assert found.status_code == 200, found.text
    answer: dict[str, Any] = found.json()
    assert answer["columns"] == [{"name": "customer", "type": "string"}, {"name": "total", "type": "bigint"}]
    assert answer["rows"] == [["ada", 9], ["bob", 7], ["eve", None]]
    assert (answer["truncated"], answer["ms"] > 0) == (False, True)
    assert len(ask(QUERY, limit=2).json()["rows"]) == 2
    assert ask(QUERY, limit=2).json()["truncated"]

    unknown = ask("SELECT * FROM sales_of_mai")
    assert (unknown.status_code, codes(unknown)) == (422, ["unknown_table"])
    assert unknown.json()["path"] == "sql"
    assert "sales_of_may" in unknown.json()["hint"]
    late = ask(
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.id * b.id % 7 = 3",
        timeout_ms=500,
    )
    assert (late.status_code, codes(late)) == (408, ["query_timeout"])

    def penstock(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["query", *arguments, "--server", live.url, "--timeout-ms", "120000"])

    table = penstock(QUERY)
    assert table.exit_code == 0, table.output
    assert [line.split() for line in table.stdout.splitlines()] == [
        ["customer", "total"],
        ["ada", "9"],
        ["bob", "7"],
        ["eve", "NULL"],
    ]
    assert "3 rows in" in table.stderr
    assert penstock(QUERY, "--csv").stdout == "customer,total\nada,9\nbob,7\neve,\n"
    assert json.loads(penstock(QUERY, "--json", "--limit", "1").stdout)["rows"] == [["ada", 9]]
    refused = penstock("DROP TABLE sales_of_may")
    assert refused.exit_code == 3
    assert "error[sql_forbidden] sql: DROP TABLE is not allowed" in refused.stderr
    assert client.delete("/streams/sales_of_may").status_code == 204


@pytest.mark.slow
def test_a_running_query_can_be_cancelled(live: Api) -> None:
    body = {
        "sql": "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.id * b.id % 7 = 3",
        "timeout_ms": 120_000,
        "id": "endless",
    }
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(live.client.post("/query", json=body)))
    began = time.monotonic()
    thread.start()
    while live.client.delete("/query/endless").status_code == 404:
        assert time.monotonic() < began + 60
        time.sleep(0.1)
    thread.join(60)
    assert (answers[0].status_code, codes(answers[0])) == (409, ["query_cancelled"])
    assert time.monotonic() < began + 60
    assert live.client.delete("/query/endless").status_code == 404


def test_queries_are_saved_on_the_server(client: httpx.Client) -> None:
    assert client.get("/queries").json() == {"items": []}
    made = client.put("/queries/By customer", json={"sql": "SELECT 1"})
    assert made.status_code == 200, made.text
    client.put("/queries/By customer", json={"sql": QUERY})
    client.put("/queries/all", json={"sql": "SELECT * FROM sales_of_may"})
    items = client.get("/queries").json()["items"]
    assert [(each["name"], each["sql"], each["user"]) for each in items] == [
        ("By customer", QUERY, None),
        ("all", "SELECT * FROM sales_of_may", None),
    ]
    assert [client.delete(f"/queries/{each['name']}").status_code for each in items] == [204, 204]
    assert client.delete("/queries/all").status_code == 404
    assert client.put("/queries/a", json={"sql": "\x00"}).status_code == 422
    assert client.put("/queries/a", json={}).status_code == 422


def test_the_number_of_saved_queries_is_limited(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_queries, "MOST", 1)
    assert client.put("/queries/one", json={"sql": "SELECT 1"}).status_code == 200
    assert client.put("/queries/one", json={"sql": "SELECT 2"}).status_code == 200
    refused = client.put("/queries/two", json={"sql": "SELECT 2"})
    assert (refused.status_code, codes(refused)) == (409, ["too_many_queries"])
    client.delete("/queries/one")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sql": ""},
        {"sql": "SELECT 1", "limit": 0},
        {"sql": "SELECT 1", "rows": 1},
        {"sql": "SELECT 1", "id": "a b"},
        [],
    ],
)
def test_what_is_no_query(client: httpx.Client, body: Any) -> None:
    assert client.post("/query", json=body).status_code == 422


def test_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["query", "SELECT 1", "--csv", "--json"]).exit_code == 2
    assert CliRunner().invoke(app, ["query", "SELECT 1", "--limit", "0"]).exit_code == 2
