"""Dead letters, and other reports of the steps of a flow."""
