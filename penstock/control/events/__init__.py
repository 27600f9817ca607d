"""The fate of events: at sinks, as dead letters, in replays."""
