"""User SQL: permitted constructs, planning, and errors."""
