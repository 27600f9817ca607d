"""The source and the sink `kafka`, based on Spark's own connector."""
