"""What the connectors of table formats share."""
