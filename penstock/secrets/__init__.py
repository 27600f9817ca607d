"""Secrets: values that documents refer to by name and only workers read."""

from penstock.secrets.keys import Keys
from penstock.secrets.reading import NO_SECRETS, Lookup, Secrets

__all__ = ["NO_SECRETS", "Keys", "Lookup", "Secrets"]
