"""`storage: local`: a log in segment files."""
