"""Events as messages with a target, a key, headers and a value: shared code for queues."""
