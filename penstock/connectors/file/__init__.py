"""The source and the sink `file`."""
