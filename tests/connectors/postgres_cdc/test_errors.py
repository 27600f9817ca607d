"""Clear errors and the connection test, on a real server, without Spark."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from penstock.connectors.postgres_cdc.position import Position
from penstock.connectors.postgres_cdc.source import PostgresCdcSource
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from tests.postgres_cdc_log import Log, no_stream
from tests.postgres_cdc_place import ORDERS, Place
from tests.postgres_cdc_server import PASSWORD, USER


def test_errors_say_what_is_wrong(place: Place, logs: list[Log]) -> None:
    place.run(ORDERS, "CREATE TABLE keyless (a int)")
    url = place.server.url(place.database)

    def error_of(source: PostgresCdcSource, position: str | None = None) -> PenstockError:
        log = Log(source, "pipeline:wrong:1", position=position)
        logs.append(log)
        with pytest.raises(PenstockError) as caught:
            log.open()
        problem = caught.value.problems[0]
        assert problem.path
        assert problem.hint
        assert PASSWORD not in f"{problem}"
        return caught.value

    def code_of(source: PostgresCdcSource, position: str | None = None) -> str:
        return error_of(source, position).problems[0].code

    def made(**fields: Any) -> PostgresCdcSource:
        return PostgresCdcSource(**{"url": url, "tables": ["orders", "keyless"], **fields})

    assert code_of(made()) == "no_replica_identity"
    assert code_of(made(tables=["ordesr", "public.x*"])) == "unknown_table"
    assert isinstance(error_of(made(url="postgresql://a@127.0.0.1:9/x")), Unavailable)
    assert code_of(made(url=f"{url}_not")) == "unknown_database"
    login = url.replace("penstock@", f"{USER}:wrong@")
    assert code_of(made(url=login)) == "postgres_login"
    place.run("CREATE PUBLICATION small FOR TABLE orders")
    assert code_of(made(publication="small")) == "not_published"
    gone = Position(5, origin="x").text()
    assert code_of(made(tables=["orders", "order*"]), gone) == "other_database"

    log = Log(made(tables=["order*"]), "pipeline:gone:1")
    logs.append(log)
    place.run("INSERT INTO orders VALUES (1, 'a', 1)")
    log.drain()
    log.close()
    place.drop("penstock_pipeline_gone_1")
    with pytest.raises(Invalid) as caught:
        log.open()
    assert caught.value.problems[0].code == "slot_missing"

    user = url.replace("penstock@", f"{USER}:{PASSWORD.replace(chr(39), '%27')}@")
    assert code_of(made(url=user, tables=["orders", "order*"])) == "postgres_forbidden"


def test_a_connection_test_says_what_is_missing(place: Place) -> None:
    place.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 'NaN')", "CREATE TABLE keyless (a int)")
    url, site = (
        place.server.url(place.database),
        Site("pipeline:probe:1", 1, no_stream, "in", policy=UNRESTRICTED),
    )

    def probed(**fields: Any) -> Any:
        return PostgresCdcSource(**{"url": url, "tables": ["orders"], **fields}).probe(None, site)  # type: ignore[arg-type]

    found = probed()
    assert found.problems == []
    assert found.offers == {
        "tables": ["public.keyless", "public.orders"], "columns": ["id", "customer", "amount"],
    }  # fmt: skip
    assert found.sample == [{"id": 1, "customer": "a", "amount": "NaN"}]
    (problem,) = probed(tables=["ordres"]).problems
    assert (problem.code, problem.hint) == ("unknown_table", "did you mean 'public.orders'?")
    assert [problem.code for problem in probed(tables=["keyless"]).problems] == ["no_replica_identity"]
    assert [problem.code for problem in probed(url="postgresql://x@127.0.0.1:9/x").problems] == [
        "unreachable"
    ]
    place.run(f"CREATE ROLE plain_{place.database} LOGIN")
    try:
        codes = {
            each.code for each in probed(url=url.replace("penstock@", f"plain_{place.database}@")).problems
        }
        assert codes == {"replication_forbidden", "postgres_forbidden"}
    finally:
        place.run(f"DROP ROLE plain_{place.database}")


def test_a_server_without_logical_replication(postgres_url: str) -> None:
    url = postgres_url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("CREATE TABLE IF NOT EXISTS plain (id int PRIMARY KEY)")
    source = PostgresCdcSource(url=url, tables=["plain"], schema="id INT")
    site = Site("pipeline:plain:1", 1, no_stream, "in", policy=UNRESTRICTED)
    codes = [problem.code for problem in source.probe(None, site).problems]  # type: ignore[arg-type]
    assert codes == ["wal_level"]
    receiver = source.receiver(site)
    with pytest.raises(Invalid) as caught:
        receiver.open(None)
    receiver.close()
    assert caught.value.problems[0].code == "wal_level"
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("DROP PUBLICATION penstock_pipeline_plain_1")
        sql.execute("DROP TABLE plain")
