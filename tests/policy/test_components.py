"""Every connector and processor that can name a file or a server, against the same hostile texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from penstock.policy.policy import Policy
from penstock.settings import load
from penstock.specs.catalog import ROLES, Role, catalog
from penstock.specs.documents import PipelineSpec
from penstock.specs.reach import mark_of
from penstock.specs.text import read_one

SUSPECT = re.compile(
    r"path|file|dir$|directory|url|uri|endpoint|host|address|brokers?$|servers?$|warehouse|location|options"
    r"|listen|modules|json_schema|format$|database"
)
"""Names of fields that may be those of a file or a server."""

HARMLESS = {
    "HttpSource.path": "the path that events are sent to, on this server",
    "Paging.path": "a path in a JSON answer",
    "AmqpSource.virtual_host": "a name inside the server",
    "AmqpSink.virtual_host": "a name inside the server",
    "PostgresCdcSource.database": "a name inside the server",
}
"""Fields of suspicious names that name neither a file nor a server."""

PATH, HOST = "/etc/passwd", "169.254.169.254"


def models(kind: Any, seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in seen:
            seen.add(kind)
            yield kind
            for info in kind.model_fields.values():
                yield from models(info.annotation, seen)
    else:
        for inner in get_args(kind):
            yield from models(inner, seen)


def has_text(kind: Any) -> bool:
    return kind is str or any(has_text(inner) for inner in get_args(kind))


def test_every_field_that_may_name_a_file_or_a_server_is_marked() -> None:
    seen: set[type[BaseModel]] = set()
    components = [each for role in ROLES for each in catalog(role).classes.values()]
    unmarked = {
        f"{model.__name__}.{name}"
        for component in components
        for model in models(component, seen)
        for name, info in model.model_fields.items()
        if SUSPECT.search(name) and has_text(info.annotation) and mark_of(model, name) is None
    }
    assert unmarked == set(HARMLESS)


CASES: list[tuple[Role, str, str, str]] = [
    # role, type, fields in YAML, the field that is refused
    ("source", "file", "{path: PATH, format: text}", "path"),
    ("source", "file", "{path: 'http://HOST/latest', format: text}", "path"),
    ("source", "file", "{path: 'webhdfs://HOST/latest', format: text}", "path"),
    ("source", "file", "{path: 'har:///etc/x.har', format: text}", "path"),
    ("source", "file", "{path: 's3a://b/x', format: text, store: {endpoint: 'http://HOST'}}",
     "store.endpoint"),
    ("source", "file", "{path: s3a://b/x, format: text, store: {options: {fs.s3a.endpoint: HOST}}}",
     "store.options.fs.s3a.endpoint"),
    ("source", "file", "{path: s3a://b/x, format: text, store: {options: {fs.s3a.proxy.host: HOST}}}",
     "store.options.fs.s3a.proxy.host"),
    ("source", "file", "{path: in, format: csv, options: {path: PATH}}", "options.path"),
    ("source", "file", "{path: in, format: csv, options: {paths: '[\"PATH\"]'}}", "options.paths"),
    ("sink", "file", "{path: ../../../../../../../../etc/x, format: json}", "path"),
    ("source", "delta", "{path: PATH}", "path"),
    ("source", "delta", "{path: s3://b/t, options: {AWS_ENDPOINT_URL: 'http://HOST'}}",
     "options.AWS_ENDPOINT_URL"),
    ("sink", "delta", "{path: 'file:///etc/x'}", "path"),
    ("source", "iceberg", "{catalog: {type: rest, uri: 'http://HOST'}, table: a.b}", "catalog.uri"),
    ("source", "iceberg", "{catalog: {type: sql, uri: 'sqlite:////etc/x.db'}, table: a.b}", "catalog.uri"),
    ("sink", "iceberg", "{catalog: {type: sql, uri: 'sqlite:///x.db', warehouse: 'file:///etc'}, table: a.b}",
     "catalog.warehouse"),
    ("sink", "iceberg", "{catalog: {type: rest, uri: 'https://a.example', options: {s3.endpoint: 'http://HOST'}},"
     " table: a.b}", "catalog.options.s3.endpoint"),
    ("source", "kafka", "{brokers: ['HOST:9092'], topics: [t], format: text}", "brokers[0]"),
    ("source", "kafka", "{brokers: ['a.example:1,HOST:9092'], topics: [t], format: text}", "brokers[0]"),
    ("sink", "kafka", "{brokers: ['a.example:1'], topic: t, security: {tls: {ca_file: PATH}}}",
     "security.tls.ca_file"),
    ("sink", "kafka", "{brokers: ['a.example:1'], topic: t, security: {tls: {certificate_file: PATH}}}",
     "security.tls.certificate_file"),
    ("source", "sql", "{url: 'postgresql://u@HOST/d', table: t, column: i}", "url"),
    ("source", "sql", "{url: 'postgresql://u@a.example/d?hostaddr=HOST', table: t, column: i}", "url"),
    ("source", "sql", "{url: 'postgresql://u@a.example/d?sslkey=PATH', table: t, column: i}", "url"),
    ("source", "sql", "{url: 'sqlite:////etc/x.db', table: t, column: i}", "url"),
    ("sink", "sql", "{url: 'sqlite:///../../../../../../../../etc/x.db', table: t}", "url"),
    ("sink", "sql", "{url: 'mysql://u@HOST/d', table: t}", "url"),
    ("source", "postgres_cdc", "{url: 'postgresql://u@HOST/d', tables: [t]}", "url"),
    ("source", "postgres_cdc", "{host: HOST, user: u, database: d, tables: [t]}", "host"),
    ("source", "postgres_cdc", 
     "{host: a.example, user: u, database: d, tables: [t], options: {sslrootcert: PATH}}",
     "options.sslrootcert"),
    ("source", "mysql_cdc", "{url: 'mysql://u@HOST', tables: [d.t]}", "url"),
    ("source", "mysql_cdc", "{host: HOST, user: u, tables: [d.t]}", "host"),
    ("source", "nats", "{servers: ['HOST:4222'], jetstream: s, format: text}", "servers[0]"),
    ("source", "redis", "{address: 'HOST:6379', key: s, format: text}", "address"),
    ("sink", "redis", "{address: 'a.example:6379', key: s, security: {tls: {ca_file: PATH}}}",
     "security.tls.ca_file"),
    ("sink", "mqtt", "{address: 'HOST:1883', topic: t}", "address"),
    ("sink", "amqp", "{address: 'HOST:5672', exchange: e, routing_key: k}", "address"),
    ("source", "websocket", "{url: 'ws://HOST/', format: text}", "url"),
    ("source", "websocket", "{url: 'wss://a.example/', format: text, tls: {certificate_file: PATH}}",
     "tls.certificate_file"),
    ("source", "syslog", "{listen: '127.0.0.1:5514', transport: tls, tls: {certificate_file: PATH}}",
     "tls.certificate_file"),
    ("source", "http_poll", "{url: 'http://HOST/', format: text}", "url"),
    ("source", "http_poll", "{url: 'http://0xa9fea9fe/', format: text}", "url"),
    ("sink", "http", "{url: 'http://HOST/'}", "url"),
    ("sink", "http", "{url: 'http://a.example/', auth: {oauth2: {token_url: 'http://HOST/', client_id: i,"
     " client_secret: s}}}", "auth.oauth2.token_url"),
    ("source", "spark", "{format: socket, options: {host: a.example, port: '1'}}", "format"),
    ("source", "spark", "{format: jdbc, options: {}}", "format"),
    ("source", "spark", "{format: org.apache.spark.sql.execution.streaming.sources.TextSocketSourceProvider}",
     "format"),
    ("source", "spark", "{format: text, options: {path: PATH}}", "options.path"),
    ("sink", "spark", "{format: parquet, options: {path: 'FILE:/etc'}}", "options.path"),
    ("processor", "http", "{url: 'http://HOST/', into: a}", "url"),
    ("processor", "lookup", "{file: {path: PATH, format: csv}, on: {a: a}, columns: b STRING}", "file.path"),
    ("processor", "lookup", "{database: {url: 'mysql://u@HOST/d', table: t}, on: {a: a}, columns: b STRING}",
     "database.url"),
    ("processor", "lookup", "{database: {url: 'sqlite:////etc/d', table: t}, on: {a: a}, columns: b STRING}",
     "database.url"),
    ("processor", "javascript", "{file: PATH}", "file"),
    ("processor", "javascript", "{inline: x, modules: {m: PATH}}", "modules.m"),
    ("processor", "python", "{file: PATH}", "file"),
    ("processor", "validate", "{json_schema: PATH}", "json_schema"),
    ("processor", "decode", "{field: value, format: avro, schema_file: PATH, schema: a STRING}",
     "schema_file"),
    ("processor", "decode", "{field: value, format: avro, registry: {url: 'http://HOST'}, schema: a STRING}",
     "registry.url"),
    ("processor", "encode", "{into: value, format: avro, registry: {url: 'http://HOST', subject: s}}",
     "registry.url"),
]  # fmt: skip


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    monkeypatch.chdir(tmp_path)
    return Policy.of(load({"home": tmp_path / "home"}, env={}).settings)


@pytest.mark.parametrize(("role", "kind", "fields", "field"), CASES)
def test_a_component_that_names_what_it_must_not_reach_is_refused_at_its_field(
    role: Role, kind: str, fields: str, field: str, policy: Policy
) -> None:
    given = read_one(fields.replace("PATH", PATH).replace("HOST", HOST))
    component = catalog(role).classes[kind].model_validate({"type": kind, **given})
    (problem,) = policy.problems(component)
    assert problem.path == field
    assert problem.code in ("path_not_allowed", "address_not_allowed", "format_not_allowed")
    assert "policy." in (problem.hint or "")


def test_an_address_to_listen_on_is_none_that_is_reached(tmp_path: Path) -> None:
    settings = load({"home": tmp_path, "policy.private_addresses": "refuse"}, env={}).settings
    syslog = catalog("source").classes["syslog"].model_validate({"listen": "0.0.0.0:5514"})
    assert not list(Policy.of(settings).problems(syslog))


def test_all_components_with_a_mark_have_a_hostile_case() -> None:
    tried = {(role, kind) for role, kind, _, _ in CASES}
    for role in ROLES:
        for kind, component in catalog(role).classes.items():
            marks = {
                mark_of(model, name) for model in models(component, set()) for name in model.model_fields
            }
            others = {"source", "sink"} - {role}
            if marks - {None, "listen"}:
                shared = any((other, kind) in tried for other in others)
                assert (role, kind) in tried or shared, (role, kind)


@pytest.mark.parametrize("role", ROLES)
def test_the_examples_of_all_components_are_allowed(role: Role, tmp_path: Path) -> None:
    roots = [".", "/var/lib/lake", "/etc/penstock"]
    policy = Policy.of(load({"home": tmp_path, "policy.paths": roots}, env={}).settings)
    for component in catalog(role).classes.values():
        if component.example:
            made = component.model_validate(read_one(component.example))
            assert not list(policy.problems(made)), component.__name__


def test_the_place_of_a_problem_is_that_in_the_document(policy: Policy) -> None:
    spec = PipelineSpec.model_validate(
        {
            "source": {"type": "generate"},
            "processors": [{"type": "http", "url": "http://169.254.169.254/", "into": "x"}],
            "sinks": [{"type": "drop"}, {"type": "file", "path": "/etc/x", "format": "json"}],
        }
    )
    found = [(each.code, each.path) for each in policy.problems(spec, "spec")]
    assert found == [
        ("address_not_allowed", "spec.processors[0].url"),
        ("path_not_allowed", "spec.sinks[1].path"),
    ]


def test_a_text_with_a_dollar_is_judged_once_its_variables_are_known(policy: Policy) -> None:
    """`$${x}` and values of secrets leave such texts in a document that was resolved."""
    sink = {"type": "sql", "url": "postgresql://me:${x}@169.254.169.254/db", "table": "t"}
    spec = PipelineSpec.model_validate({"source": {"type": "generate"}, "sinks": [sink]})
    assert not list(policy.problems(spec, "spec", variables=True))
    assert [each.code for each in policy.problems(spec, "spec")] == ["address_not_allowed"]
