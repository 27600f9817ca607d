"""The source and the sink `delta`, on the library delta-rs."""
