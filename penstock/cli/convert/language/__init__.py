"""Expressions of mapping languages: read from Bloblang and PDL, written as Spark SQL and JavaScript."""
