"""The source `postgres_cdc`: changes of PostgreSQL tables, read by logical replication."""
