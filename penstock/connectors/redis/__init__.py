"""The source and the sink `redis`, on streams of Redis."""
