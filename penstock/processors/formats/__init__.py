"""Formats in which events hold others: one module each, used by `decode` and `encode`."""
