"""The source and the sink `amqp`, for RabbitMQ and other servers of AMQP 0.9.1."""
