"""Monitoring: samples, history, and findings that need attention."""
