"""`storage: kafka`: a log in a Kafka topic."""
