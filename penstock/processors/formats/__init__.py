"""Formats of values inside events, one module each, for `decode` and `encode`."""
