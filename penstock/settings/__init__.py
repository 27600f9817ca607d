"""Settings of a Penstock process."""

from penstock.settings.catalogue import Setting, catalogue
from penstock.settings.loading import FOR_DOCUMENTS, NOT_SETTINGS, Loaded, Origin, load
from penstock.settings.model import (
    KafkaSaslSettings,
    KafkaSettings,
    KafkaTlsSettings,
    LogSettings,
    Settings,
)

__all__ = [
    "FOR_DOCUMENTS",
    "NOT_SETTINGS",
    "KafkaSaslSettings",
    "KafkaSettings",
    "KafkaTlsSettings",
    "Loaded",
    "LogSettings",
    "Origin",
    "Setting",
    "Settings",
    "catalogue",
    "load",
]
