"""The public test kit: connectors that fail as they are told, and processes that die where they are told."""
