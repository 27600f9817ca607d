"""The `syslog` source: takes messages of RFC 3164 and RFC 5424 by UDP, TCP or TLS."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from penstock.connectors.probe import Probe
from penstock.connectors.received import Received, ReceivedSource, Receiver
from penstock.connectors.remote import Address, host_and_port
from penstock.connectors.syslog.framing import Framing
from penstock.connectors.syslog.listener import Listener, Transport
from penstock.connectors.syslog.parse import COLUMNS, parse
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.frames.logs import LOGS, place_of
from penstock.frames.site import Site
from penstock.specs.base import Spec
from penstock.specs.reach import FilePath, Reach

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 1000
"""Messages that are kept with one write."""


class ServerTls(Spec):
    """The identity of the server. Files are read where the flow runs."""

    certificate_file: FilePath = Field(
        min_length=1, description="PEM file with the server's private key and certificates."
    )
    key_password: str | None = Field(default=None, description="Password of the private key.")
    client_ca_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file of certificate authorities: senders need a certificate signed by one of them. "
        "Absent: senders need none.",
    )

    def context(self) -> ssl.SSLContext:
        """The settings for Python's TLS; `Invalid` if a file cannot be used."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Most senders never read: with unread tickets, their close would be a reset, and reset
        # connections lose what was sent last.
        made.num_tickets = 0
        path, file = "tls.certificate_file", self.certificate_file
        try:
            made.load_cert_chain(file, password=self.key_password or "")
            if self.client_ca_file is not None:
                path, file = "tls.client_ca_file", self.client_ca_file
                made.load_verify_locations(file)
                made.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ssl.SSLError) as error:
            message = f"can't use '{file}': {getattr(error, 'strerror', None) or error}"
            hint = "check that the file is on the worker, is PEM, and that key_password is correct"
            raise Invalid(Problem(code="tls_file", message=message, path=path, hint=hint)) from None
        return made


class SyslogSource(ReceivedSource):
    """Listens for syslog messages (RFC 5424 and RFC 3164) over UDP, TCP or TLS.

    Syslog has no acknowledgements. A message that the source has read is kept on disk right away; those that
    are on their way when the process ends are lost, unless their sender notices. When the
    pipeline can't keep up, senders by TCP and TLS have to wait. Datagrams by UDP wait in a buffer of the
    system (`buffer_bytes`), and those that do not fit are counted as dropped by the pipeline's input stream.

    The columns are `facility` and `severity` by name, `priority` as a number, `time`, `host`, `app`,
    `procid`, `msgid`, `data` (the structured data: id → name → value), `message`, `raw` (the message as it
    came) and `peer` (the address of the sender). A message that can't be parsed is not lost: its text is in
    `message`, and `malformed` says what is wrong.
    """

    type: Literal["syslog"] = "syslog"
    listen: Annotated[Address, Reach("listen")] = Field(
        description="Listen address of the worker, as `host:port`, such as 0.0.0.0:5514."
    )
    transport: Transport = Field(default="tcp", description="Transport protocol.")
    tls: ServerTls | None = Field(default=None, description="Transport `tls`: certificate of the server.")
    framing: Framing = Field(
        default="auto",
        description="Transports `tcp` and `tls`: message framing (RFC 6587). `auto` "
        "decides by the first byte of a connection.",
    )
    timezone: str = Field(default="UTC", description="Time zone of timestamps without one (RFC 3164).")
    max_bytes: int = Field(
        default=65536,
        ge=480,
        le=16 * 1024 * 1024,
        description="Transports `tcp` and `tls`: maximum size of a message; a longer one is split into "
        "several events.",
    )
    buffer_bytes: int = Field(
        default=8 * 1024 * 1024,
        ge=4096,
        le=1024**3,
        description="Transport `udp`: requested receive buffer; the system may grant less (`rmem_max`).",
    )

    guarantee: ClassVar = "at-most-once"
    tested: ClassVar = "logger of util-linux 2.38.1"
    example: ClassVar = """\
type: syslog
listen: 0.0.0.0:6514
transport: tls
tls: {certificate_file: /etc/penstock/syslog.pem}
"""

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, KeyError, OSError):
            raise ValueError(f"'{value}' is not a valid time zone: use one such as Europe/Berlin") from None
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.transport == "tls") != (self.tls is not None):
            raise ValueError("transport 'tls' needs 'tls', and other transports can't have it")
        return self

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str:
        return COLUMNS

    def receiver(self, site: Site) -> Receiver:
        return _SyslogReceiver(self, site)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        try:
            self.listener().close()
        except PenstockError as error:
            return Probe(problems=error.problems)
        return Probe()

    def listener(self) -> Listener:
        """The sockets; raises `Invalid` or `Unavailable` if it is not possible to listen."""
        context = self.tls.context() if self.tls is not None else None
        try:
            return Listener(
                host_and_port(self.listen),
                self.transport,
                framing=self.framing,
                max_bytes=self.max_bytes,
                buffer_bytes=self.buffer_bytes,
                tls=context,
            )
        except (OSError, OverflowError) as error:
            raise _refused(error, self.listen) from None


class _SyslogReceiver(Receiver):
    """Reads messages when they can be kept, and counts those that the system has dropped."""

    def __init__(self, source: SyslogSource, site: Site) -> None:
        self.source, self.site = source, site
        self._listener: Listener | None = None
        self._zone: tzinfo = UTC

    def open(self, position: str | None) -> None:
        self._zone = ZoneInfo(self.source.timezone)
        self._listener = self.source.listener()

    def receive(self, wait_s: float) -> Received | None:
        import pyarrow as pa

        from penstock.streams.events import payload_schema

        assert self._listener is not None
        found = self._listener.take(wait_s, MOST)
        if self._listener.dropped:
            place = place_of(self.site, self.site.input, field="type")
            LOGS.log(place.directory).count(dropped_buffer_full=self._listener.dropped)
            self._listener.dropped = 0
        if not found:
            return None
        rows = [parse(raw, peer, self._zone) for raw, peer in found]
        return Received(pa.RecordBatch.from_pylist(_maps(rows), payload_schema(COLUMNS)))

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.stop()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()


def _maps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with maps as Arrow wants them: lists of pairs."""
    for row in rows:
        if (data := row.get("data")) is not None:
            row["data"] = [(name, list(values.items())) for name, values in data.items()]
    return rows


def _refused(error: Exception, address: str) -> PenstockError:
    number = getattr(error, "errno", None)
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    message = f"can't listen on {address}: {reason}"
    if number == errno.EADDRINUSE:
        hint = "choose another port: this port is used by another process or by this pipeline"
        return Unavailable(Problem(code="address_in_use", message=message, path="listen", hint=hint))
    hint = "use an address of the worker's machine, and a port above 1023 unless the worker runs as root"
    return Invalid(Problem(code="listen_failed", message=message, path="listen", hint=hint))
