"""Pipelines of DeltaForge."""
