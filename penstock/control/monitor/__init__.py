"""Monitoring: samples, history, attention."""
