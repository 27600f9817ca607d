"""Dead letters and everything else that the steps of a flow report beside their events."""
