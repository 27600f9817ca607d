"""The connection test of MQTT: checks the broker and the login."""

from __future__ import annotations

from penstock.connectors.mqtt.client import MqttConnection, MqttEnd
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import PenstockError, Problem, Retryable


def probe_mqtt(end: MqttEnd) -> Probe:
    """The result of the connection test. The protocol can't list topics, so none are offered."""
    if problems := unreachable([end.address], "address"):
        return Probe(problems=problems)
    try:
        MqttConnection(end).close()
    except PenstockError as error:
        return Probe(problems=error.problems)
    except Retryable as error:
        hint = "check the broker's log"
        return Probe(problems=[Problem(code="mqtt_failed", message=str(error), path="address", hint=hint)])
    return Probe()
