"""The streams of an installation: their logs, their readers, and events that are sent to them."""
