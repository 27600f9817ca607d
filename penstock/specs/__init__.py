"""The declarations of users: one model per kind, with its defaults and its validation."""
