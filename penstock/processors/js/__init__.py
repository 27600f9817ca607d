"""The implementation of the `javascript` step: V8 in its own process, and the conversion of values."""
