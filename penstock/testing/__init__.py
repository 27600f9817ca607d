"""The public test kit: connectors that fail as a test scripts it."""
