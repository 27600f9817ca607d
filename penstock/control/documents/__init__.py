"""Documents: saving, validating and editing them."""
