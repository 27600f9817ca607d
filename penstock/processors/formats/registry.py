"""A schema registry compatible with Confluent's, and the header that precedes a value.

The header is a zero byte and the id of the schema in four bytes. For protobuf, the indexes of the message in
its file follow.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import Field

from penstock.errors import Invalid, Retryable
from penstock.frames.faults import Fault
from penstock.policy import Policy
from penstock.processors.base import Desk
from penstock.specs.base import Spec
from penstock.specs.reach import ServerUrl

if TYPE_CHECKING:
    import httpx

HEADER = struct.Struct(">bI")
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistrySpec(Spec):
    """The connection to a schema registry."""

    url: ServerUrl = Field(
        min_length=1, description="Address of the registry, such as `http://registry.example:8081`."
    )
    username: str | None = Field(default=None, description="User for basic authentication.")
    password: str | None = Field(default=None, description="Password of the user.")
    subject: str | None = Field(
        default=None, description="Only for encoding: subject whose latest schema is used."
    )
    timeout_ms: int = Field(default=5_000, ge=1, description="Timeout of a response.")


class Registry:
    """A client of a registry. Fetches each schema once, since the schema of an id never changes."""

    def __init__(self, spec: RegistrySpec, policy: Policy) -> None:
        from penstock.frames.http.clients import client_of

        self.url = spec.url.rstrip("/")
        self.client: httpx.Client = client_of(policy, None, None, spec.timeout_ms / 1000, 1)
        self.client.headers["Accept"] = MEDIA_TYPE
        if spec.username is not None:
            self.client.auth = (spec.username, spec.password or "")
        self._schemas: dict[int, str] = {}

    def schema(self, schema_id: int) -> str:
        """The text of a schema; `Mismatch` if there is no schema with this id."""
        if schema_id not in self._schemas:
            answer = self._ask("GET", f"/schemas/ids/{schema_id}")
            if answer is None:
                from penstock.streams.decode.results import Mismatch

                raise Mismatch("unknown_schema", f"the registry has no schema {schema_id}")
            self._schemas[schema_id] = str(answer["schema"])
        return self._schemas[schema_id]

    def latest(self, subject: str) -> tuple[int, str]:
        """The id and text of the latest schema of a subject."""
        answer = self._ask("GET", f"/subjects/{subject}/versions/latest")
        if answer is None:
            raise Fault("unknown_subject", f"the registry {self.url} has no subject '{subject}'")
        return int(answer["id"]), str(answer["schema"])

    def _ask(self, method: str, path: str) -> dict[str, Any] | None:
        """The response; None if not found. Outages are retried, other error responses fail the flow."""
        import httpx

        try:
            response = self.client.request(method, self.url + path)
        except Invalid as error:  # the address is not allowed
            raise Fault(error.problems[0].code, error.problems[0].message) from None
        except httpx.TransportError as error:
            raise Retryable(f"the schema registry {self.url} can't be reached: {error}") from error
        if response.status_code == 404:
            return None
        if response.status_code in (408, 429) or response.status_code >= 500:
            raise Retryable(f"the schema registry {self.url} responded with {response.status_code}")
        if response.status_code != 200:
            raise Fault(
                "registry_refused",
                f"the schema registry {self.url} responded with {response.status_code} to {path}",
            )
        found = response.json()
        return found if isinstance(found, dict) else None


class GivenRegistry(Registry):
    """The registry of a test run: given schemas by id or subject."""

    def __init__(self, given: Any) -> None:
        self.given = (
            {str(name): schema for name, schema in given.items()} if isinstance(given, Mapping) else {}
        )

    def schema(self, schema_id: int) -> str:
        if str(schema_id) not in self.given:
            from penstock.streams.decode.results import Mismatch

            raise Mismatch("no_answer", f"the test doesn't define what schema {schema_id} is")
        return _text(self.given[str(schema_id)])

    def latest(self, subject: str) -> tuple[int, str]:
        if subject not in self.given:
            raise Fault("no_answer", f"the test doesn't define what the schema of '{subject}' is")
        return 0, _text(self.given[subject])


def registry_for(spec: RegistrySpec, desk: Desk) -> Registry:
    """The registry of a task: the real one, or in a test run the given one."""
    return GivenRegistry(desk.given) if desk.testing else _shared(spec, desk.policy)


def unframed(value: bytes) -> tuple[int, bytes]:
    """The id of the schema, and the rest of the value."""
    if len(value) < HEADER.size or value[0]:
        from penstock.streams.decode.results import Mismatch

        raise Mismatch("not_framed", "the value does not begin with the header of a schema registry")
    return HEADER.unpack_from(value)[1], value[HEADER.size :]


def framed(schema_id: int, body: bytes) -> bytes:
    """A value, preceded by the header."""
    return HEADER.pack(0, schema_id) + body


@lru_cache(maxsize=32)
def _shared(spec: RegistrySpec, policy: Policy) -> Registry:
    """One client per process, so that each schema is requested once."""
    return Registry(spec, policy)


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)
