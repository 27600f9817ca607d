"""The publication and the slot of a flow: created if missing, and validated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from penstock.connectors.postgres_cdc.catalogue import Catalogue, TableInfo, check_identities, quoted
from penstock.connectors.postgres_cdc.position import lsn_number
from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from psycopg2.extras import LogicalReplicationConnection

logger = structlog.get_logger()

PLUGIN = "pgoutput"
LOOK_S = 0.2
RELEASE_S = 5.0
"""Seconds that the reader of a slot has to disconnect on its own."""


@dataclass(frozen=True)
class Names:
    """The names of a flow's publication, slot and connections in the database."""

    publication: str
    slot: str
    reader: str
    """The application name of the flow's connections, without the epoch."""
    epoch: int
    managed: bool
    """Whether Penstock named the publication and manages its tables."""

    @property
    def application(self) -> str:
        """The application name of this epoch's connections."""
        return f"{self.reader}{self.epoch}"

    def is_older(self, application: str | None) -> bool:
        """Whether a connection belongs to an earlier epoch of the same flow, or to this one."""
        epoch = (application or "").removeprefix(self.reader)
        return (application or "").startswith(self.reader) and epoch.isdigit() and int(epoch) <= self.epoch


@dataclass(frozen=True)
class Created:
    """A new slot: its snapshot has all transactions committed before `lsn`, and the stream has the rest."""

    lsn: int
    snapshot: str


def ensure_publication(
    catalogue: Catalogue, names: Names, tables: Sequence[TableInfo], stopped: Callable[[], bool]
) -> None:
    """Create the publication, or add tables to it if Penstock has created it."""
    published = catalogue.published(names.publication)
    wanted = {table.table: table for table in tables}
    listed = ", ".join(table.quoted for table in tables)
    if published is None:
        check_identities(tables)
        of = f" FOR TABLE {listed}" if listed else ""
        root = " WITH (publish_via_partition_root = true)"
        catalogue.run(f"CREATE PUBLICATION {quoted(names.publication)}{of}{root}")
        return
    missing = [table for name, table in wanted.items() if name not in published]
    if missing and not names.managed:
        raise Invalid(_not_published(names.publication, missing))
    if missing:
        check_identities(missing)
        catalogue.run(f"ALTER PUBLICATION {quoted(names.publication)} SET TABLE {listed}")
        _await_older(catalogue, stopped)


def _await_older(catalogue: Catalogue, stopped: Callable[[], bool]) -> None:
    """Wait for the end of all transactions that may have changed a table before it was published.

    Such changes are not in the replication stream, so a snapshot has to include them.
    """
    row = catalogue.one("SELECT txid_current()")
    assert row is not None
    while not stopped():
        oldest = catalogue.one("SELECT txid_snapshot_xmin(txid_current_snapshot())")
        if oldest is not None and oldest[0] > row[0]:
            return
        time.sleep(LOOK_S)


def _not_published(publication: str, missing: Iterable[TableInfo]) -> Problem:
    first = [table.quoted for table in missing]
    return Problem(
        code="not_published",
        message=f"the publication '{publication}' does not have {', '.join(first)}",
        path="publication",
        hint=f"run: ALTER PUBLICATION {quoted(publication)} ADD TABLE {', '.join(first)}",
    )


def find_slot(catalogue: Catalogue, names: Names, database: str, *, begun: bool) -> int | None:
    """The confirmed position of the slot; None: it has to be created. `begun`: the flow has read it."""
    slot = catalogue.slot(names.slot)
    if slot is None:
        if begun:
            raise Invalid(
                Problem(
                    code="slot_missing",
                    message=f"the slot '{names.slot}' no longer exists, and changes since the last read are "
                    "lost",
                    path="slot",
                    hint="start the pipeline over to read the tables again",
                )
            )
        return None
    if slot.plugin != PLUGIN or slot.database != database:
        raise Invalid(
            Problem(
                code="other_slot",
                message=f"the slot '{names.slot}' is for the plugin '{slot.plugin}' and the database "
                f"'{slot.database}'",
                path="slot",
                hint=f"choose another name, or a slot for {PLUGIN} and '{database}'",
            )
        )
    if slot.status == "lost":
        raise Invalid(
            Problem(
                code="slot_lost",
                message=f"the server removed changes before they were read from the slot '{names.slot}'",
                path="slot",
                hint="drop the slot with pg_drop_replication_slot, and start the pipeline over; raise "
                "max_slot_wal_keep_size",
            )
        )
    return slot.confirmed


def system_of(connection: LogicalReplicationConnection) -> str:
    """The system identifier of the server, which all its replicas share."""
    with connection.cursor() as cursor:
        cursor.execute("IDENTIFY_SYSTEM")
        row = cursor.fetchone()
    assert row is not None
    return str(row[0])


def create_slot(connection: LogicalReplicationConnection, name: str) -> Created:
    """Create the slot. Waits for running transactions to end."""
    with connection.cursor() as cursor:
        cursor.create_replication_slot(name, output_plugin=PLUGIN)
        row = cursor.fetchone()
    assert row is not None
    return Created(lsn_number(row[1]), row[2])


def release_slot(catalogue: Catalogue, names: Names, stopped: Callable[[], bool]) -> None:
    """Wait until no other process of the same flow reads the slot, such as a worker that hangs.

    After `RELEASE_S` seconds, the connection of that process is terminated. A slot that another flow reads is
    left alone.
    """
    began = time.monotonic()
    ended = False
    while (slot := catalogue.slot(names.slot)) is not None and slot.reader is not None and not stopped():
        waited = time.monotonic() - began
        if not names.is_older(slot.application) or waited > 2 * RELEASE_S:
            return
        if waited > RELEASE_S and not ended:
            logger.warning("slot released", slot=names.slot, reader=slot.application)
            catalogue.rows("SELECT pg_terminate_backend(%s)", slot.reader)
            ended = True
        time.sleep(LOOK_S)
