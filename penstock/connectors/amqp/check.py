"""The connection test of AMQP: checks the server, the login, the exchange and the queue."""

from __future__ import annotations

from penstock.connectors.amqp.client import AmqpConnection, AmqpEnd
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import PenstockError, Problem, Retryable


def probe_amqp(end: AmqpEnd, *, exchange: str = "", queue: str | None = None) -> Probe:
    """The result of the test. The exchange and the queue must exist.

    It lists no objects: the protocol has no list of queues, and reading a message counts as a delivery.
    """
    if problems := unreachable([end.address], "address"):
        return Probe(problems=problems)
    connection: AmqpConnection | None = None
    try:
        connection = AmqpConnection(end)
        if exchange:
            connection.ask(
                lambda channel, answer: channel.exchange_declare(exchange, passive=True, callback=answer)
            )
        if queue is not None:
            connection.ask(
                lambda channel, answer: channel.queue_declare(queue, passive=True, callback=answer)
            )
    except PenstockError as error:
        return Probe(problems=error.problems)
    except Retryable as error:
        hint = "check the log of the server"
        return Probe(problems=[Problem(code="amqp_failed", message=str(error), path="address", hint=hint)])
    finally:
        if connection is not None:
            connection.close()
    return Probe()
