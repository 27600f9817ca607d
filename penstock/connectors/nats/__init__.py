"""The source and the sink `nats`, on JetStream."""
