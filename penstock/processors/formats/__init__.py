"""Formats of values inside events: one module each, used by `decode` and `encode`."""
