"""From documents to frames: flows, their steps, and checks that need no run."""
