"""The graph of flows and the streams and systems that they read and write."""
