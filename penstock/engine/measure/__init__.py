"""Measuring a flow on recorded events, for the command `bench`."""
