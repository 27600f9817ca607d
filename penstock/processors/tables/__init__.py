"""Tables that events are joined with: their sources, and snapshots in memory."""
