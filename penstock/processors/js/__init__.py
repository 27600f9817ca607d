"""What the `javascript` step is made of: V8 in its own process, and values on their way to it and back."""
