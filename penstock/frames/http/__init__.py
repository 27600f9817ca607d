"""Shared code of connectors and steps that call HTTP services."""
