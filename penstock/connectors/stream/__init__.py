"""The source and the sink `stream`."""
