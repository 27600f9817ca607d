"""The source and the sink `mqtt`."""
