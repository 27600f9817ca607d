"""Streams: durable append-only logs of events. No Spark and no HTTP in here."""
