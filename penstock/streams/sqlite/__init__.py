"""`storage: sqlite`: a log in one database file."""
