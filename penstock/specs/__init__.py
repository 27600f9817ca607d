"""The documents that users declare: one model per kind, with defaults and validation."""
