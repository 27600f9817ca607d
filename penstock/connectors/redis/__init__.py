"""The source and the sink `redis`, on Redis streams."""
