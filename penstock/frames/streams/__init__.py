"""Streams as Spark reads them."""
