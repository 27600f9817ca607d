"""Tables that events are joined with: where they come from, and how they are kept."""
