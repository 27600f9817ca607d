"""Streams on the disk of a server, for workers on other machines."""
