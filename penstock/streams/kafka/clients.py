"""The Kafka clients of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from penstock.errors import Problem, Unavailable
from penstock.streams.kafka.cluster import ANSWER_S, Cluster
from penstock.streams.storage import WriteFailed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka import Producer as Sender
    from confluent_kafka.admin import AdminClient

LARGEST = 64 * 1024 * 1024
"""The maximum size of a record in bytes: a frame of one large event, or a snapshot."""


class Clients:
    """The clients of one process for one cluster, shared by all its streams."""

    def __init__(self, cluster: Cluster) -> None:
        try:
            from confluent_kafka import Producer
            from confluent_kafka.admin import AdminClient
        except ImportError:
            raise Unavailable(_no_library()) from None
        self.cluster = cluster
        self._replacing = threading.Lock()
        common: dict[str, Any] = {**cluster.client(), "error_cb": _ignore}
        sending = {
            **common,
            "enable.idempotence": True,  # implies acks from all in-sync replicas
            "linger.ms": 0,  # the committer has grouped the events
            "message.max.bytes": LARGEST,
            "message.timeout.ms": int(ANSWER_S * 1000),
        }
        self._new_sender: Callable[[], Sender] = lambda: Producer(sending)
        self._sender = self._new_sender()
        self._broken: list[Sender] = []
        self._new_admin: Callable[[], AdminClient] = lambda: AdminClient(common)
        self.admin = self._new_admin()
        threading.Thread(target=self._serve, name="kafka", daemon=True).start()

    def _serve(self) -> None:
        """Run the delivery callbacks."""
        while True:
            for sender in self._broken:
                sender.poll(0)
            self._sender.poll(1.0)

    def send(self, topic: str, partition: int, value: bytes) -> Future[int]:
        """Append a record; the future has its offset once all in-sync replicas have the record."""
        future: Future[int] = Future()
        sender = self._sender

        def done(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._replace(sender, error)
                future.set_exception(WriteFailed(f"Kafka did not store the events: {error}"))
            else:
                future.set_result(int(message.offset() or 0))

        try:
            sender.produce(topic, value, partition=partition, on_delivery=done)
        except BufferError:
            raise WriteFailed("too many events are in flight to Kafka") from None
        except Exception as error:
            self._replace(sender, error.args[0] if error.args else error)
            raise WriteFailed(f"Kafka did not store the events: {error}") from error
        return future

    def _replace(self, sender: Sender, error: object) -> None:
        """Replace a producer after a fatal error: its sequence numbers do not match those of a broker."""
        fatal = getattr(error, "fatal", None)
        with self._replacing:
            if fatal is not None and fatal() and sender is self._sender:
                self._broken.append(sender)
                self._sender = self._new_sender()

    def confirmed(self, sent: Future[int]) -> int:
        """The offset of a record that was sent."""
        try:
            return sent.result(2 * ANSWER_S)
        except TimeoutError:
            raise WriteFailed("Kafka did not confirm whether the events were stored") from None

    def forget_leaders(self) -> None:
        """Look up partition leaders again: the client caches those from before a broker's restart."""
        self.admin = self._new_admin()

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer with a manually assigned partition, outside any consumer group."""
        from confluent_kafka import Consumer

        return Consumer(
            {
                **self.cluster.client(),
                "group.id": f"{self.cluster.prefix}streams",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "fetch.error.backoff.ms": 50,
                "fetch.max.bytes": LARGEST,
                "max.partition.fetch.bytes": 4 * 1024 * 1024,
                "error_cb": _ignore,
                **settings,
            }
        )


_clients: dict[tuple[int, Cluster], Clients] = {}
"""By process: the clients of a parent process stay here, since a child can neither use nor close them."""

_lock = threading.Lock()


def clients(cluster: Cluster) -> Clients:
    """The clients of this process."""
    key = os.getpid(), cluster
    with _lock:
        if key not in _clients:
            _clients[key] = Clients(cluster)
        return _clients[key]


def admin() -> Any:
    """The library's admin module, untyped because it does not declare its exports."""
    from confluent_kafka import admin as found

    return found


def _no_library() -> Problem:
    message, hint = "the Kafka client is not installed", "pip install 'penstock[kafka]'"
    return Problem(code="missing_library", message=message, path="spec.storage", hint=hint)


def _ignore(_: object) -> None:
    """Ignore connection errors: the client retries them, and the waiting calls raise them."""


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_new_lock)
