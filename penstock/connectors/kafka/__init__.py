"""The source and the sink `kafka`, on Spark's own connector."""
