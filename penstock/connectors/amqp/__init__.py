"""The source and the sink `amqp`, for RabbitMQ and other AMQP 0.9.1 servers."""
