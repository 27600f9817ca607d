"""The source and the sink `iceberg`, on the library PyIceberg."""
