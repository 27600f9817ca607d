"""Events as messages with a target, a key, headers and a value: what the sinks of queues have in common."""
