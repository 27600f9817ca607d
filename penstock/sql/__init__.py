"""User SQL: what it may do, and how its errors are reported."""
