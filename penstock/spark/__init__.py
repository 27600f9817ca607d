"""How Spark's processes are started: the JVM with its class archive, Python processes by forking."""
