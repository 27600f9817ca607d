"""Conventions of connectors, processors and the engine: hidden columns, notes, faults, the site of a flow."""
