"""The stream of binary log events that a server sends to a replica.

PyMySQL connects and logs in; the response to the replication command is read here from its socket, in large
chunks, because even a transaction of one row consists of four events.
"""

from __future__ import annotations

import struct
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.connectors.mysql_cdc.position import Place
from penstock.errors import Retryable

if TYPE_CHECKING:
    import pymysql

QUERY, STOP, ROTATE, FORMAT, XID = 2, 3, 4, 15, 16
TABLE_MAP = 19
GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, TAGGED_GTID = (
    33,
    34,
    35,
    38,
    39,
    40,
    42,
)
HEARTBEAT, HEARTBEAT_V2 = 27, 41
MARIADB_GTID, MARIADB_GTID_LIST = 162, 163
QUERY_COMPRESSED = 165
WRITES, UPDATES, DELETES = (
    frozenset({23, 30, 166, 169}),
    frozenset({24, 31, 167, 170}),
    frozenset({25, 32, 168, 171}),
)
ROWS = WRITES | UPDATES | DELETES
ROWS_V2 = frozenset({30, 31, 32, 169, 170, 171})
"""Row events with the longer header."""
COMPRESSED = range(165, 172)

ARTIFICIAL = 0x20
"""The flag of an event that is not in the log."""

HEARTBEAT_S = 1.0
"""Seconds without events after which the server sends a heartbeat with the end of its log."""

PAUSE_S = 86_400
"""Seconds without a read, such as while the input stream is full, before the server disconnects."""

SILENCE_S = 30.0
"""Seconds without data after which the connection counts as lost."""

PIECE = 1 << 18
"""Bytes to read from the connection at once."""

LARGEST = 0xFFFFFF
"""Maximum size of a packet in bytes."""

DUMP, DUMP_GTID = 0x12, 0x1E
THROUGH_GTID = 0x04

_HEADER = struct.Struct("<IBIIIH")


class Event(NamedTuple):
    """An event of the binary log."""

    type: int
    time_s: int
    server: int
    end: int
    """The end position of the event in its file; 0 if it is not in the log."""
    flags: int
    body: bytes


class Refused(Exception):
    """An error that the server has sent instead of events."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Feed:
    """Reads the binary log events of a connection."""

    def __init__(self, connection: pymysql.Connection[Any], server_id: int, mariadb: bool) -> None:
        self._connection: Any = connection  # private members are used, too
        self._server_id, self._mariadb = server_id, mariadb
        self._socket: Any = None
        self._data, self._at, self._missing = b"", 0, 0
        self._checksum: bool | None = None
        """Whether events end with a checksum; None: unknown until the first FORMAT event."""
        self._heard = time.monotonic()

    def start(self, place: Place) -> None:
        """Request the events after a place: by its GTIDs if it has them, else by file and position."""
        with self._connection.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @source_binlog_checksum = @@global.binlog_checksum")
            cursor.execute(f"SET @master_heartbeat_period = {int(HEARTBEAT_S * 1e9)}")
            cursor.execute(f"SET @source_heartbeat_period = {int(HEARTBEAT_S * 1e9)}")
            cursor.execute(f"SET SESSION net_write_timeout = {PAUSE_S}")
            if self._mariadb:
                cursor.execute("SET @mariadb_slave_capability = 4")
                if place.gtid is not None:
                    cursor.execute("SET @slave_connect_state = %s", (place.gtid,))
        if place.gtid is None:
            body = struct.pack("<IHI", place.pos & 0xFFFFFFFF, 0, self._server_id) + place.file.encode()
            self._connection._execute_command(DUMP, body)
        elif self._mariadb:
            self._connection._execute_command(DUMP, struct.pack("<IHI", 4, 0, self._server_id))
        else:
            self._connection._execute_command(DUMP_GTID, self._gtid_request(place.gtid))
        self._socket = self._connection._sock
        self._heard = time.monotonic()

    def take(self, wait_s: float) -> list[Event]:
        """The events already received, else the next events; empty if none arrive within `wait_s` seconds.

        Raises `Refused`, or `Retryable` if the connection is lost.
        """
        found = self._events()
        until = time.monotonic() + wait_s
        while not found:
            if not self._read(until - time.monotonic()):
                if time.monotonic() - self._heard > SILENCE_S:
                    raise Retryable(f"the server has been silent for {SILENCE_S:.0f} seconds")
                break
            found = self._events()
        return found

    def _events(self) -> list[Event]:
        """The events that have been received completely."""
        data, at, found = self._data, self._at, []
        end = len(data)
        while end - at > 4:
            size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            after = at + 4 + size
            if after > end:
                self._missing = after - end
                break
            if size == LARGEST:  # the event continues in the next packet
                packet, after = self._joined(at)
                if packet is None:
                    break
            else:
                packet = data[at + 4 : after]
            found.append(self._event(packet))
            at = after
        self._at = at
        return found

    def _joined(self, at: int) -> tuple[bytes | None, int]:
        """The joined packets of the event at an offset, and the offset after it; None if it is incomplete."""
        data, parts, size = self._data, [], LARGEST
        while size == LARGEST:
            if len(data) < at + 4:
                return None, at
            size = int.from_bytes(data[at : at + 3], "little")
            if len(data) < at + 4 + size:
                self._missing = at + 4 + size - len(data)
                return None, at
            parts.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        return b"".join(parts), at

    def _event(self, packet: bytes) -> Event:
        if packet[0]:
            self._refuse(packet)
        time_s, kind, server, _, end, flags = _HEADER.unpack_from(packet, 1)
        if kind == FORMAT:
            self._checksum = packet[-5] == 1
            return Event(kind, time_s, server, end, flags, packet[20:-5])
        if self._checksum is False:
            return Event(kind, time_s, server, end, flags, packet[20:])
        right = zlib.crc32(packet[1:-4]) == int.from_bytes(packet[-4:], "little")
        if self._checksum and not right and not flags & ARTIFICIAL:
            raise Retryable(f"an event that ends at {end} is damaged: its checksum is wrong")
        return Event(kind, time_s, server, end, flags, packet[20:-4] if right else packet[20:])

    def _refuse(self, packet: bytes) -> None:
        """Raise the error that a server has sent instead of an event."""
        if packet[0] == 0xFE:
            raise Retryable("the server ended the stream of events")
        text = packet[9:] if packet[3:4] == b"#" else packet[3:]
        raise Refused(int.from_bytes(packet[1:3], "little"), text.decode(errors="replace"))

    def _read(self, wait_s: float) -> bool:
        """Read from the connection; false if nothing arrives within `wait_s` seconds."""
        self._socket.settimeout(max(wait_s, 0.001))
        pieces, missing, self._missing = [self._data[self._at :]], self._missing, 0
        try:
            while len(pieces) == 1 or missing > 0:
                piece = self._socket.recv(max(PIECE, min(missing, LARGEST)))
                if not piece:
                    raise Retryable("the server closed the connection")
                pieces.append(piece)
                missing -= len(piece)
                self._heard = time.monotonic()
        except TimeoutError:
            return len(pieces) > 1
        except OSError as error:
            raise Retryable(f"the connection was lost: {error.strerror or error}") from None
        finally:
            self._data, self._at = b"".join(pieces), 0
        return True

    def _gtid_request(self, gtid: str) -> bytes:
        """The MySQL command that requests the events that are not in a GTID set."""
        from pymysqlreplication.gtid import GtidSet

        sent: bytes = GtidSet(gtid).encoded()
        head = struct.pack("<HII", THROUGH_GTID, self._server_id, 0) + struct.pack("<QI", 4, len(sent))
        return head + sent


def inflate(event: Event) -> Event:
    """A compressed MariaDB event, decompressed."""
    if event.type == QUERY_COMPRESSED:
        head = 13 + event.body[8] + 1 + int.from_bytes(event.body[11:13], "little")
    elif event.type in ROWS_V2:
        head = 8 + int.from_bytes(event.body[8:10], "little")
        head = _after_bitmaps(event, head)
    else:
        head = _after_bitmaps(event, 8)
    size = event.body[head] & 7
    body = event.body[:head] + zlib.decompress(event.body[head + 1 + size :])
    return event._replace(body=body, type=QUERY if event.type == QUERY_COMPRESSED else event.type)


def _after_bitmaps(event: Event, at: int) -> int:
    from penstock.connectors.mysql_cdc.table_map import packed

    width, at = packed(event.body, at)
    return at + (width + 7) // 8 * (2 if event.type in UPDATES else 1)
