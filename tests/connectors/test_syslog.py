"""The `syslog` source: its parser, its sockets, and pipelines from them."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.connectors.syslog.framing import Frames
from penstock.connectors.syslog.listener import Listener
from penstock.connectors.syslog.parse import parse
from penstock.connectors.syslog.source import SyslogSource
from penstock.engine.plan.connections import probe_connector
from penstock.frames.logs import LOGS
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.source_suite import Events, SourceSuite, SourceSystem
from tests.daemon import certify
from tests.flows import NO_STREAMS
from tests.servers import free_port

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def fields(text: str | bytes, zone: str = "UTC", now: datetime = NOW) -> dict[str, Any]:
    raw = text.encode() if isinstance(text, str) else text
    event = parse(raw, "p", ZoneInfo(zone), now)
    assert (event.pop("raw"), event.pop("peer")) == (raw, "p")
    return {name: value for name, value in event.items() if value is not None}


def test_rfc_5424() -> None:
    data = '[a@1 x="1" y="\\"q\\" \\\\ \\]"][b@1][a@1 x="2"]'
    assert fields(f"<165>1 2026-01-02T03:04:05.678901+02:00 host app 12 ID47 {data} \ufeffä text\n") == {
        "priority": 165, "facility": "local4", "severity": "notice", "host": "host", "app": "app",
        "procid": "12", "msgid": "ID47", "time": datetime(2026, 1, 2, 1, 4, 5, 678901, UTC),
        "data": {"a@1": {"x": "1,2", "y": '"q" \\ ]'}, "b@1": {}}, "message": "ä text",
    }  # fmt: skip
    assert fields("<0>1 - - - - - -") == {
        "priority": 0, "facility": "kern", "severity": "emerg", "message": "",
    }  # fmt: skip
    assert fields("<191>1 - - - - - - - x")["message"] == "- x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<34>Jan  1 22:14:15 mymachine su: 'su root' failed for lonvick",
            {"host": "mymachine", "app": "su", "message": "'su root' failed for lonvick"},
        ),
        (
            "<34>Jan 01 22:14:15 10.0.0.1 sshd[4721]: Failed: x",
            {"host": "10.0.0.1", "app": "sshd", "procid": "4721", "message": "Failed: x"},
        ),
        (
            "<34>2026-01-01T22:14:15Z host app[1]: x",
            {"host": "host", "app": "app", "procid": "1", "message": "x"},
        ),
        ("<34>Jan  1 22:14:15 host no tag here", {"host": "host", "message": "no tag here"}),
    ],
)
def test_rfc_3164(text: str, expected: dict[str, Any]) -> None:
    assert fields(text) == {
        "priority": 34, "facility": "auth", "severity": "crit",
        "time": datetime(2026, 1, 1, 22, 14, 15, tzinfo=UTC), **expected,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stamp", "zone", "expected"),
    [
        ("Jan  3 11:00:00", "UTC", datetime(2026, 1, 3, 11, tzinfo=UTC)),  # a clock that is fast
        ("Jan  4 00:00:00", "UTC", datetime(2025, 1, 4, tzinfo=UTC)),
        ("Dec 31 23:59:59", "UTC", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("Dec 31 23:59:60", "UTC", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("Feb 29 00:00:00", "UTC", datetime(2024, 2, 29, tzinfo=UTC)),
        ("Jan  1 00:00:00", "Europe/Berlin", datetime(2025, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_times_without_a_year(stamp: str, zone: str, expected: datetime) -> None:
    assert fields(f"<1>{stamp} h a: x", zone)["time"] == expected


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        ("no priority", "no priority", "no priority"),
        ("<192>Jan  1 22:14:15 h a: x", "<192>Jan  1 22:14:15 h a: x", "no priority"),
        ("<13>just text", "just text", "no time"),
        ("<13>Feb 30 00:00:00 h a: x", "Feb 30 00:00:00 h a: x", "'Feb 30 00:00:00' is not a valid time"),
        ("<13>1 yesterday h a - - - x", "1 yesterday h a - - - x", "'yesterday' is not a valid time"),
        ('<13>1 - h a - - [x y="z x', '[x y="z x', "the structured data is malformed"),
        (b"<13>\xff\xfe", "\ufffd\ufffd", "no time"),
        ("", "", "no priority"),
    ],
)
def test_what_cannot_be_parsed_is_kept(text: str | bytes, message: str, reason: str) -> None:
    found = fields(text)
    assert (found["message"], found["malformed"]) == (message, reason)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event(raw: bytes) -> None:
    assert parse(raw, "p")["raw"] == raw
    parse(b"<13>" + raw, "p")
    parse(b"<13>1 - - - - - [" + raw, "p")


@given(
    st.lists(
        st.binary(min_size=1, max_size=50).filter(lambda each: b"\n" not in each and each[-1:] != b"\r")
    ),
    st.lists(st.integers(1, 30)),
    st.booleans(),
)
def test_framing_in_any_pieces(messages: list[bytes], sizes: list[int], counted: bool) -> None:
    body = b"".join(b"%d %s" % (len(each), each) if counted else each + b"\n" for each in messages)
    frames = Frames("octet_counting" if counted else "newline", 1000)
    found: list[bytes] = []
    at = 0
    for size in [*sizes, len(body)]:
        found += frames.feed(body[at : at + size])
        at += size
    assert found == messages
    assert frames.end() is None


def test_framing_finds_out_and_loses_nothing() -> None:
    assert list(Frames("auto", 100).feed(b"3 a\nb5 <1>xy")) == [b"a\nb", b"<1>xy"]
    assert list(Frames("auto", 100).feed(b"<1>a\r\n<1>b\n\n")) == [b"<1>a", b"<1>b"]
    broken = Frames("auto", 100)
    assert list(broken.feed(b"3 abcx y\n7 z")) == [b"abc", b"x y"]
    assert broken.end() == b"7 z"
    assert list(Frames("auto", 4).feed(b"<1>abcdef\n")) == [b"<1>a", b"bcde", b"f"]
    assert list(Frames("auto", 4).feed(b"6 abcdef2 gh")) == [b"abcd", b"ef", b"gh"]


@contextmanager
def listening(transport: Any, **more: Any) -> Iterator[tuple[Listener, tuple[str, int]]]:
    address = ("127.0.0.1", free_port())
    with closing(Listener(address, transport, **more)) as listener:
        yield listener, address


def taken(listener: Listener, count: int) -> list[bytes]:
    found: list[bytes] = []
    until = time.monotonic() + 10
    while len(found) < count and time.monotonic() < until:
        found += [raw for raw, _ in listener.take(0.1, 1000)]
    return found


@pytest.mark.skipif(not shutil.which("logger"), reason="no logger (Debian: apt-get install bsdutils)")
@pytest.mark.parametrize("form", ["--rfc3164", "--rfc5424"])
@pytest.mark.parametrize("way", [["--udp"], ["--tcp"], ["--tcp", "--octet-count"]])
def test_messages_of_logger(form: str, way: list[str]) -> None:
    with listening(way[0][2:]) as (listener, (host, port)):
        command = [
            "logger",
            *way,
            form,
            "-n",
            host,
            "-P",
            str(port),
            "-p",
            "local3.err",
            "-t",
            "app",
            "--id=77",
        ]
        if form == "--rfc5424":
            command += ["--msgid", "M1", "--sd-id", "x@1", "--sd-param", 'k="a b"']
        sender = subprocess.Popen([*command, "one: two"])
        (raw,) = taken(listener, 1)
        assert sender.wait(5) == 0
    event = parse(raw, "p")
    assert event.get("malformed") is None
    assert (event["facility"], event["severity"], event["app"]) == ("local3", "err", "app")
    assert (event["procid"], event["message"]) == ("77", "one: two")
    assert abs((event["time"] - datetime.now(UTC)).total_seconds()) < 60
    if form == "--rfc5424":
        assert (event["msgid"], event["data"]["x@1"]) == ("M1", {"k": "a b"})


def test_datagrams_that_are_dropped_are_counted() -> None:
    with listening("udp", buffer_bytes=4096) as (listener, address):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(500):
                sender.sendto(b"<13>%d" % number, address)
            first = taken(listener, 1)
            assert listener.dropped == 0, "known with the next datagram only"
            sender.sendto(b"<13>last", address)
        found = first + taken(listener, 1)
        assert found[-1] == b"<13>last"
        assert 0 < listener.dropped == 501 - len(found)


def test_a_sender_waits_while_nobody_reads() -> None:
    with listening("tcp") as (listener, address):
        sent = threading.Event()

        def send() -> None:
            with socket.create_connection(address) as sender:
                sender.sendall(b"<13>" + b"x" * 20 + b"\n")
                for _ in range(2000):
                    sender.sendall((b"<13>" + b"y" * 20_000 + b"\n") * 2)
            sent.set()

        threading.Thread(target=send, daemon=True).start()
        listener.take(1, 1)  # accepts
        assert not sent.wait(1.5)
        assert len(taken(listener, 4001)) == 4001
        assert sent.wait(5)


def test_a_last_message_without_an_end_is_kept() -> None:
    with listening("tcp") as (listener, address):
        with socket.create_connection(address) as sender:
            sender.sendall(b"<13>a\n<13>b")
        assert taken(listener, 2) == [b"<13>a", b"<13>b"]


def test_tls(tmp_path: Path) -> None:
    key, certificate = certify(tmp_path)
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    given = {"listen": "127.0.0.1:1", "transport": "tls", "tls": {"certificate_file": str(both)}}
    server = SyslogSource.model_validate(given).tls
    assert server is not None
    with listening("tls", tls=server.context()) as (listener, address):
        with socket.create_connection(address) as plain:
            plain.sendall(b"<13>not encrypted\n")
            listener.take(0.5, 1)
        client = ssl.create_default_context(cafile=str(certificate))

        def send() -> None:
            with (
                socket.create_connection(address) as sender,
                client.wrap_socket(sender, server_hostname="127.0.0.1") as encrypted,
            ):
                encrypted.sendall(b"<13>" + b"x" * 40_000 + b"\n<13>b\n")

        thread = threading.Thread(target=send)
        thread.start()
        found = taken(listener, 2)
        thread.join(5)
        assert [len(each) for each in found] == [40_004, 5]


COLUMNS_OF_MESSAGE = """\
SELECT m.* FROM (SELECT from_json(message, 'id BIGINT, name STRING') AS m FROM input)"""


class SyslogPlace(SourceSystem):
    processors: ClassVar = ({"type": "sql", "query": COLUMNS_OF_MESSAGE},)
    killable = False  # senders do not find out what was lost

    def __init__(self, **more: Any) -> None:
        self.address = ("127.0.0.1", free_port())
        self.more = more

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {
            "type": "syslog",
            "listen": f"127.0.0.1:{self.address[1]}",
            "max_bytes": 1000,
            **self.more,
            **fields,
        }

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Send by a thread that waits until somebody listens."""
        lines = [f"<13>1 - host app - - - {json.dumps(dict(event))}\n".encode() for event in events]
        threading.Thread(target=self._send, args=[b"".join(lines)], daemon=True).start()

    def _send(self, body: bytes) -> None:
        while True:
            try:
                with socket.create_connection(self.address) as sender:
                    sender.sendall(body)
                    sender.shutdown(socket.SHUT_WR)
                    sender.recv(1)  # it is read to its end
                return
            except OSError:
                time.sleep(0.2)

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        no_file = {"transport": "tls", "tls": {"certificate_file": "/no/such.pem"}}
        return {
            "address": (self.spec(listen="203.0.113.1:5514"), "listen_failed"),
            "file": (self.spec(**no_file), "tls_file"),
        }


@pytest.mark.slow
class TestSyslogSource(SourceSuite):
    @pytest.fixture
    def system(self) -> SyslogPlace:
        return SyslogPlace()


@pytest.mark.slow
def test_columns_and_drops(spark: SparkSession, tmp_path: Path) -> None:
    bench, place = Bench(spark, tmp_path), SyslogPlace(transport="udp", buffer_bytes=4096)
    out = tmp_path / "out"
    slow = {
        "processors": [{"type": "throttle", "rate": 20}],
        "buffer": {"limit": 5},
        "batch": {"max_events": 5},
    }
    with (
        bench.running(place.spec(), to_files(out), **slow) as kept,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        wait_until("the start", lambda: kept.state.ready)
        time.sleep(1)
        sender.sendto(b'<165>1 2026-01-02T03:04:05Z h a 1 M [x@1 k="v"] text', place.address)
        wait_until("the event", lambda: files(out))
        for number in range(300):
            sender.sendto(b"<13>%d" % number, place.address)
        storage = LOGS.log(bench.site.stream(bench.site.input).directory).storage

        def lost() -> int:
            sender.sendto(b"<13>again", place.address)
            return storage.counts()["dropped_buffer_full"]

        wait_until("drops are counted", lost)
        wait_until("another event", lambda: len(files(out)) > 1)
    event = files(out)[0]
    assert event.pop("peer").startswith("127.0.0.1:")
    assert event.pop("raw")
    assert event == {
        "facility": "local4", "severity": "notice", "priority": 165, "time": "2026-01-02T03:04:05.000000Z",
        "host": "h", "app": "a", "procid": "1", "msgid": "M", "data": {"x@1": {"k": "v"}}, "message": "text",
        "malformed": None,
    }  # fmt: skip
    assert files(out)[1]["malformed"] == "no time"


@pytest.mark.slow
def test_the_connection_test(spark: SparkSession) -> None:
    place = SyslogPlace()
    assert probe_connector("source", place.spec(), NO_STREAMS, spark, {}).problems == []
    with closing(Listener(place.address, "tcp")):
        (problem,) = probe_connector("source", place.spec(), NO_STREAMS, spark, {}).problems
        assert (problem.code, problem.path) == ("address_in_use", "listen")
        assert problem.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"transport": "tls"},
        {"tls": {"certificate_file": "x"}},
        {"timezone": "Mars"},
        {"listen": "5514"},
    ],
)
def test_settings_that_do_not_fit(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"tls|time zone|address"):
        SyslogSource.model_validate({"listen": "127.0.0.1:5514", **fields})
