"""Processors: one module per step."""
