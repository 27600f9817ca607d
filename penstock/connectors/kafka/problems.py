"""Explanations of Kafka client failures: the problem, a hint, and whether a retry can help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import Invalid, PenstockError, Problem, Unavailable


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    code: str
    message: str
    """`{0}` is the text of a matched group; `{brokers}` and `{topics}` are those of the connector."""
    hint: str
    path: str | None = None
    fatal: bool = False


def _rule(
    pattern: str, code: str, message: str, hint: str, path: str | None = None, *, fatal: bool = False
) -> _Rule:
    return _Rule(re.compile(pattern), code, message, hint, path, fatal)


RULES = (
    _rule(
        r"No resolvable bootstrap urls",
        "unknown_host",
        "none of the addresses {brokers} can be resolved",
        "check the host names",
        "brokers",
    ),
    _rule(
        r"SaslAuthenticationException(?:: ([^\n]*))?",
        "kafka_login",
        "Kafka rejects the login: {0}",
        "check the mechanism, the user and the password",
        "security.sasl",
        fatal=True,
    ),
    _rule(
        r"(?:SslAuthenticationException|SSLHandshakeException)(?:: ([^\n]*))?",
        "kafka_tls",
        "no encrypted connection to {brokers}: {0}",
        "check security.tls.ca_file, and whether the brokers require a client certificate",
        "security.tls",
        fatal=True,
    ),
    _rule(
        r"InvalidConfigurationException(?:: ([^\n]*))?|(?:^|\.)ConfigException(?:: ([^\n]*))?",
        "kafka_setting",
        "the Kafka client rejects a setting: {0}",
        "check 'options' and 'security'",
        "options",
        fatal=True,
    ),
    _rule(
        r"(?:Topic|Group|Cluster|TransactionalId)AuthorizationException(?:: ([^\n]*))?",
        "kafka_forbidden",
        "permission denied: {0}",
        "grant the user access to the topic, and to its consumer group",
        fatal=True,
    ),
    _rule(
        r"RecordTooLargeException(?:: ([^\n]*))?",
        "too_large",
        "an event exceeds the size limit of the brokers: {0}",
        "set max_event_bytes to at most max.message.bytes of the topic",
        "max_event_bytes",
        fatal=True,
    ),
    _rule(
        r"InvalidTopicException(?:: ([^\n]*))?",
        "invalid_topic",
        "not a valid topic name: {0}",
        "use letters, digits, '.', '_' and '-'",
        fatal=True,
    ),
    _rule(
        r"must specify all TopicPartitions",
        "position_partitions",
        "'position' must list exactly the partitions of the topics",
        "set an offset, earliest or latest for each partition of each topic",
        "position",
        fatal=True,
    ),
    _rule(
        r"KAFKA_DATA_LOSS|OffsetOutOfRangeException|[Ss]ome data may have been (?:lost|missed)",
        "gap",
        "events were removed from Kafka before they were read",
        "set gap: skip to continue with the oldest available event, or start over",
        "gap",
        fatal=True,
    ),
    _rule(
        r"Topic ([\w.-]+) not present in metadata",
        "unknown_topic",
        "there is no topic '{0}', or its brokers can't be reached",
        "create the topic, or correct its name",
    ),
    _rule(
        r"UnknownTopicOrPartitionException",
        "unknown_topic",
        "not all of these topics exist: {topics}",
        "create the topic, or correct its name",
    ),
    _rule(
        r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network)Exception|node assignment",
        "kafka_unreachable",
        "no response from {brokers}",
        "check that the brokers are running and that their advertised listeners are reachable from here",
        "brokers",
    ),
)
"""The rules, in the order in which they are tried."""


def explained(
    text: str, brokers: Sequence[str], topics: Sequence[str], path: str | None = None
) -> PenstockError | None:
    """The error behind the text of an exception and its causes; None if it is not a failure of Kafka.

    A rule without its own path gets `path`.
    """
    for rule in RULES:
        found = rule.pattern.search(text)
        if found is None:
            continue
        detail = next((group for group in found.groups() if group), None) or rule.code.replace("_", " ")
        named = {"brokers": ", ".join(brokers), "topics": ", ".join(topics)}
        message = rule.message.format(detail.strip().rstrip("."), **named)
        problem = Problem(code=rule.code, message=message, path=rule.path or path, hint=rule.hint)
        return Invalid(problem) if rule.fatal else Unavailable(problem)
    return None
