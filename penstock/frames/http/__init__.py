"""What connectors and steps that call HTTP services have in common."""
