"""Shared parts of the connectors for table formats, Delta Lake and Iceberg."""
