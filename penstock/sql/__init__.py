"""SQL written by users: what it may do, and how its errors are told."""
