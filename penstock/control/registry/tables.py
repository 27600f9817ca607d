"""The tables of the registry, the same on SQLite and PostgreSQL.

The code reads and writes by these definitions; the migrations create the tables, and a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    and_,
    case,
    func,
    not_,
    null,
    or_,
    select,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp: in Python timezone-aware and in UTC on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        # SQLite stores no time zone; the stored values are in UTC.
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# Byte order on both databases: PostgreSQL would otherwise sort by the locale of the server.
Word = String().with_variant(String(collation="C"), "postgresql")
# Not JSONB: that would reorder the fields of a document.
Json = JSON(none_as_null=True)
Serial = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()


def _owner(**options: Any) -> Column[Any]:
    return Column("uid", Word, ForeignKey("documents.uid", ondelete="CASCADE"), nullable=False, **options)


documents = Table(
    "documents",
    metadata,
    Column("uid", Word, primary_key=True),
    Column("kind", Word, nullable=False),
    Column("id", Word, nullable=False),
    Column("name", Word, nullable=False),
    Column("revision", Integer, nullable=False),
    # Name, id and description in lower case, the name first: searched, and sorted by name.
    Column("search_text", Word, nullable=False),
    # The epoch of a removed flow: epochs never decrease.
    Column("last_epoch", Integer, nullable=False, server_default="0"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("kind", "id", name="uq_documents_kind_id"),
)

labels = Table(
    "labels",
    metadata,
    _owner(),
    Column("key", Word, nullable=False),
    Column("value", Word, nullable=False),
    Index("ix_labels_uid", "uid"),
)

revisions = Table(
    "revisions",
    metadata,
    _owner(primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("document", Json, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

refs = Table(
    "refs",
    metadata,
    Column("from_uid", Word, ForeignKey("documents.uid", ondelete="CASCADE"), primary_key=True),
    Column("path", Word, primary_key=True),
    Column("to_kind", Word, primary_key=True),
    Column("to_id", Word, primary_key=True),
    Index("ix_refs_to", "to_kind", "to_id"),
)

flows = Table(
    "flows",
    metadata,
    _owner(primary_key=True),
    Column("id", Word, nullable=False),
    Column("desired", Word, nullable=False),
    Column("outcome", Word),
    # Only set while a worker holds the flow; see `flow_phase`.
    Column("phase", Word, nullable=False),
    # Set while the flow waits for its turn to start: the lowest ticket of a worker is next.
    Column("ticket", BigInteger),
    Column("error", Json),
    Column("attempts", Json, nullable=False),
    Column("worker", Word),
    Column("epoch", Integer, nullable=False, server_default="0"),
    Column("running_revision", Integer),
    Column("ops", Json, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    # Labels that a worker must have; null: any worker.
    Column("placement", Json),
    # When the flow was assigned to its worker or its phase changed, by the registry's clock.
    Column("since", Double),
    # When the worker was asked to release the flow, by the registry's clock.
    Column("recalled_at", Double),
    # Workers that have failed to start the flow in time since it last ran.
    Column("tried", Json),
    # Why the flow can't be assigned to any worker.
    Column("wait_reason", Json),
    # The home that stores the flow's progress; empty: the server's; null: no progress yet.
    Column("home", Word),
    # Since the last successful batch, or since a user last started the flow.
    Column("failed_attempts", Integer, nullable=False, server_default="0"),
    # Since when the backlog has grown without a finished batch; set only after `monitor.stalled_ms`.
    Column("stalled_since", Double),
    Index("ix_flows_worker", "worker"),
    Index("ix_flows_desired", "desired", "outcome"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", Word, primary_key=True),
    Column("host", Word, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("url", Word, nullable=False),
    Column("token", Word, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("heartbeat_until", Double, nullable=False),
    Column("state", Word, nullable=False),
    Column("info", Json, nullable=False),
    Column("labels", Json, nullable=False, server_default="{}"),
    # Maximum number of flows; null: no limit.
    Column("capacity", Integer),
    # The id of the home directory in which the worker stores progress; empty: the server's.
    Column("home", Word, nullable=False, server_default=""),
    # The certificate that encrypts questions to the worker, as PEM; null: not encrypted, on loopback.
    Column("certificate", Text),
    Index("ix_workers_heartbeat_until", "heartbeat_until"),
)

users = Table(
    "users",
    metadata,
    Column("name", Word, primary_key=True),
    Column("role", Word, nullable=False),
    # An Argon2 hash, including its salt; null: the user logs in with OpenID Connect.
    Column("password", Text),
    # The identity of the user at the OpenID Connect provider: issuer and subject.
    Column("subject", Word),
    Column("disabled", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_login_at", UtcDateTime),
    UniqueConstraint("subject", name="uq_users_subject"),
)


def _user(**options: Any) -> Column[Any]:
    return Column("user", Word, ForeignKey("users.name", ondelete="CASCADE"), **options)


sessions = Table(
    "sessions",
    metadata,
    # The SHA-256 of the secret in the cookie.
    Column("hash", Word, primary_key=True),
    _user(nullable=False),
    Column("via", Word, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Index("ix_sessions_user", "user"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Word, primary_key=True),
    # The SHA-256 of the secret.
    Column("hash", Word, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Word, nullable=False),
    # The one source that an `ingest` token can send events to.
    Column("source", Word),
    # The user who created the token; null: the command line on the server, or the API without users.
    _user(),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Index("ix_tokens_user", "user"),
)

# Names, not references: an entry outlives its user and its document.
audit = Table(
    "audit",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("user", Word),
    Column("via", Word),
    Column("address", Word),
    Column("action", Word, nullable=False),
    Column("target", Word, nullable=False),
    Column("status", Integer, nullable=False),
    Column("before", Json),
    Column("after", Json),
    Index("ix_audit_at", "at"),
    sqlite_autoincrement=True,
)

# One row: the server whose coordinator is active, and until when by the registry's clock.
leader = Table(
    "leader",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("server", Word, nullable=False),
    Column("until", Double, nullable=False),
)

saved_queries = Table(
    "saved_queries",
    metadata,
    Column("name", Word, primary_key=True),
    Column("sql", Text, nullable=False),
    # A name, not a reference: a query outlives the user who saved it.
    Column("user", Word),
    Column("updated_at", UtcDateTime, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", Word, nullable=False),
    Column("name", Word, nullable=False),
    Column("type", Word, nullable=False),
    Column("data", Json, nullable=False),
    # Ids are never reused, not even after the newest event was removed: readers resume from an id.
    sqlite_autoincrement=True,
)


def flow_status() -> ColumnElement[str]:
    """The status of a flow as a column: its outcome if it should be active and has ended, else `desired`."""
    ended = and_(flows.c.desired == "active", flows.c.outcome.is_not(None))
    return case((ended, flows.c.outcome), else_=flows.c.desired)


STALLED_ATTEMPTS = 2
"""Failed attempts without a successful batch after which a flow is stalled; after the first it backs off."""


def flow_phase() -> ColumnElement[str]:
    """The phase of a flow as a column: as reported by its worker, else whether it waits for a worker.

    A flow that should process events and does not is stalled, unless it is draining.
    """
    stuck = or_(flows.c.failed_attempts >= STALLED_ATTEMPTS, flows.c.stalled_since.is_not(None))
    leaving = and_(flows.c.worker.is_not(None), flows.c.phase == "draining")
    return case(
        (and_(flow_status() == "active", stuck, not_(leaving)), "stalled"),
        (flows.c.worker.is_not(None), flows.c.phase),
        (flow_status() == "active", "waiting"),
        else_="idle",
    )


def flow_place() -> ColumnElement[int | None]:
    """The position of a flow in its worker's start queue as a column: 1 is next; null if it isn't waiting."""
    others = flows.alias("others")
    ahead = and_(
        others.c.worker == flows.c.worker, others.c.phase == "waiting", others.c.ticket <= flows.c.ticket
    )
    place = select(func.count()).select_from(others).where(ahead).correlate(flows).scalar_subquery()
    waits = and_(flows.c.worker.is_not(None), flows.c.phase == "waiting", flows.c.ticket.is_not(None))
    return case((waits, place), else_=null())
