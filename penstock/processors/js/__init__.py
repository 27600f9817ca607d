"""Parts of the `javascript` step: V8 in its own process, and the conversion of values to and from it."""
