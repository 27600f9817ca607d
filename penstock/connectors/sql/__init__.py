"""Databases as sources and sinks: PostgreSQL, MySQL, MariaDB and SQLite."""
