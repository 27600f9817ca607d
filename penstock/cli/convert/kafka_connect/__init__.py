"""Connectors of Kafka Connect."""
