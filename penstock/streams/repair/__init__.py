"""Checking and repairing the log of a stream."""
