"""The sink `http` and the source `http_poll`: requests to external services."""
