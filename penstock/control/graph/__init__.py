"""The graph of flows, and of the streams and systems they read and write."""
