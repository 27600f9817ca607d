"""Tables for lookups: their sources, and their copies in memory."""
