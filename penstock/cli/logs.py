"""Logging of long-running commands, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from penstock.redaction import redacted
from penstock.settings import LogSettings
from penstock.spark.driver import GATEWAY_LOGGER


def configure(settings: LogSettings) -> None:
    """Send the logs of Penstock and of its libraries to standard error, as configured."""
    level = getattr(logging, settings.level.upper())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if settings.format == "json" else "%H:%M:%S"),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _renderer(settings.format),
                _without_secrets,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in ("httpx", "httpcore", "alembic"):
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))
    if level > logging.DEBUG:
        # Py4J logs every exception that passes through it, even those that end a batch normally.
        logging.getLogger(GATEWAY_LOGGER).setLevel(logging.CRITICAL)


def _without_secrets(_logger: Any, _method: str, line: Any) -> str:
    return redacted(str(line))


def _renderer(log_format: str) -> Any:
    if log_format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
