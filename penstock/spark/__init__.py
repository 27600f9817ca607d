"""Spark's processes and private interfaces: the JVM with its class archive, and forked Python processes."""
