"""The server keeps what its OpenAPI document promises, whatever it is sent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import negative_data_rejection

from penstock.api.app import create_app
from penstock.settings import Settings
from tests.api.kit import Api
from tests.api.test_documents import BODIES
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow

bounded = settings(
    max_examples=6 if NIGHTLY else 3,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

# The document does not depend on what is behind the routes.
NOTHING = SimpleNamespace(registry=None, settings=Settings(), streams=None, flows=None)
DOCUMENT = create_app(NOTHING).openapi()  # type: ignore[arg-type]

EXISTING = "0"
"""The name that is generated most often."""


def promised(*, corner_cases: bool) -> schemathesis.BaseSchema:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.phases.coverage.enabled = corner_cases
    checks = schema.config.checks
    # What the schema allows may still name a document, a column or a file that does not exist.
    checks.positive_data_acceptance.enabled = False
    # A stale `If-Match` is told before the body is looked at.
    checks.negative_data_rejection.expected_statuses = ["400", "403", "404", "409", "412", "413", "422"]
    return schema


ELSEWHERE = ["/bundle", "/validate", "/query", "/functions", "/test"]
"""What is tried below."""

ENDLESS = r"^/events$|/tail$|/follow$"
"""Streams of events, which have no end."""

ACCESS = r"^/(session|users|tokens|audit)"
"""A user who is made here would have to log in for everything that follows: see `tests/api/access`."""

WHOLE = r"^/(pipelines|tasks|sources|sinks)$|/plan$"
"""Routes that take documents with connectors or steps: each field of each has corner cases, for minutes."""

ROUTES = (
    promised(corner_cases=True)
    .exclude(path=ELSEWHERE)
    .exclude(path_regex=ENDLESS)
    .exclude(path_regex=ACCESS)
    .exclude(method="PUT")
    .exclude(path_regex=WHOLE)
)
# The corner cases of these are those of all routes that create something, once more.
SAVES = (
    promised(corner_cases=NIGHTLY)
    .include(path="/bundle")
    .include(method="PUT")
    .include(path_regex=WHOLE)
    .exclude(path_regex=ACCESS)
)
# Its answer tells what is wrong with any text that can be read.
VALIDATION = promised(corner_cases=False).include(path="/validate")
QUERY = promised(corner_cases=False).include(path=["/query", "/functions"])
TEST = promised(corner_cases=False).include(path="/test")


@pytest.fixture
def url(api: Api, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server with one document of each kind."""
    for patience in ("SETTLE_S", "PROOF_S"):
        monkeypatch.setattr(
            f"penstock.control.documents.service.{patience}", 0.1
        )  # nothing that is started here runs
    for place, body in BODIES.items():
        api.client.post(f"/{place}", json={**body, "metadata": {"name": EXISTING}})
    return api.url


@ROUTES.parametrize()
@bounded
def test_every_route(case: schemathesis.Case, url: str) -> None:
    case.call_and_validate(base_url=url, excluded_checks=[negative_data_rejection] if rests(case) else [])


@SAVES.parametrize()
@bounded
def test_saves(case: schemathesis.Case, url: str) -> None:
    case.call_and_validate(base_url=url, excluded_checks=[negative_data_rejection] if rests(case) else [])


def rests(case: schemathesis.Case) -> bool:
    """Whether a document in the body is not to run now: it may be saved with an invalid spec."""
    body = case.body if isinstance(case.body, dict) else {}
    documents = body.get("documents")
    found = [
        body,
        *(each for each in (documents if isinstance(documents, list) else []) if isinstance(each, dict)),
    ]
    return any(each.get("status") in ("paused", "stopped") for each in found)


@VALIDATION.parametrize()
@bounded
def test_validation_with_spark(case: schemathesis.Case, live: Api) -> None:
    case.call_and_validate(base_url=live.url, excluded_checks=[negative_data_rejection])


@QUERY.parametrize()
@bounded
def test_queries_with_spark(case: schemathesis.Case, live: Api) -> None:
    case.call_and_validate(base_url=live.url)


@TEST.parametrize()
@bounded
def test_test_runs_with_spark(case: schemathesis.Case, live: Api) -> None:
    case.call_and_validate(base_url=live.url)
